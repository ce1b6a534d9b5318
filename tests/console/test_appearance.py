"""A project's own texts in the console: set, changed, refused, and used by the quick start."""

from typing import Any

from tests.console.conftest import Installation, Visitor

from taproof.core.projects import Project

LIST = "/console/projects"
LINES = "es.prompt_title: Zona de socios\nru.confirmed: Спасибо: до встречи"
TEXTS = {
    "default": {"prompt_title": "Members area", "button_label": 'Enter "now" <b>'},
    "es": {"prompt_title": "Zona de socios"},
    "ru": {"confirmed": "Спасибо: до встречи"},
}


def form_of(project: Project) -> tuple[str, str]:
    return f"{LIST}/{project.id}/settings", f"{LIST}/{project.id}/appearance"


async def texts_of(console: Installation, project: Project) -> Any:
    found = await console.storage.projects.read_project(project.id)
    assert found is not None
    return found.texts


async def test_texts_are_set_shown_and_removed(visitor: Visitor, console: Installation, project: Project) -> None:
    """The form shows what is stored, and saves only what the visitor changed; the quick start has the label."""
    page, action = form_of(project)
    fields = {**TEXTS["default"], "other_languages": LINES}
    shown = await visitor.follow(await visitor.submit(page, action, **fields))
    assert "Saved." in shown.text
    assert await texts_of(console, project) == TEXTS
    assert shown.one(".//input[@name='button_label']").get("value") == 'Enter "now" <b>'
    assert (shown.one(".//textarea[@name='other_languages']").text or "").strip() == LINES
    quick_start = await visitor.get(f"{LIST}/{project.id}")
    assert 'label="Enter &#34;now&#34; &lt;b&gt;"></taproof-button>' in quick_start.text
    unchanged = await visitor.follow(await visitor.submit(page, action))
    assert "Nothing was changed." in unchanged.text
    await visitor.submit(page, action, **dict.fromkeys(fields, ""))
    assert await texts_of(console, project) == {}
    assert " label=" not in (await visitor.get(f"{LIST}/{project.id}")).text


async def test_a_logo_is_shown_under_its_own_policy(visitor: Visitor, console: Installation, project: Project) -> None:
    """The settings show it, and only they may load an image from its origin; the texts do not change with it."""
    await visitor.change(project, texts=TEXTS)
    page, action = form_of(project)
    refused = await visitor.submit(page, action, logo_url="http://shop.example/logo.png")
    assert "The logo's address must begin with https://" in refused.text
    await visitor.submit(page, action, logo_url="https://cdn.shop.example/logo.png")
    shown = await visitor.get(page)
    assert shown.one(".//img[@src='https://cdn.shop.example/logo.png']").get("referrerpolicy") == "no-referrer"
    policies = [each.response.headers["content-security-policy"] for each in (shown, await visitor.get(LIST))]
    assert [" img-src 'self' data: https://cdn.shop.example;" in each for each in policies] == [True, False]
    assert await texts_of(console, project) == TEXTS
    await visitor.submit(page, action, logo_url="")
    assert "cdn.shop.example" not in (await visitor.get(page)).html


async def test_refused_texts_are_shown_again(visitor: Visitor, console: Installation, project: Project) -> None:
    """The error names the field or the line, the input stays in the form, and nothing changes."""
    page, action = form_of(project)
    refused = {
        "The prompt title must have at most 100 characters.": {"prompt_title": "x" * 101},
        "Other languages: es.expired must have at most 160": {"other_languages": f"es.expired: {'x' * 161}"},
        "Other languages: line 2 must be a language, a dot": {"other_languages": "es.expired: x\nes.expired: y"},
        "Other languages: line 1 must be": {"other_languages": "no colon"},
        "Other languages: line 3 must be": {"other_languages": "es.expired: x\n\ndefault.expired: y"},
        "Other languages: line 1 must be a": {"other_languages": "es.expired:"},
    }
    for sentence, fields in refused.items():
        answer = await visitor.submit(page, action, **fields)
        assert answer.response.status_code == 400, sentence
        assert sentence in answer.text
        for name, value in fields.items():
            if name != "other_languages":
                assert answer.one(f".//input[@name='{name}']").get("value") == value
    assert await texts_of(console, project) == {}

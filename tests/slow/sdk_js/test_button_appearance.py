"""The button in ten languages, both directions, every colour scheme, with large text and on a narrow phone."""

import re

import pytest
from playwright.async_api import expect
from tests.axe import assert_accessible
from tests.e2e.conftest import OwnProject
from tests.sdk_js.conftest import LANGUAGES, OpenContext, Site, Way, case, go, part, shown_link, start

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

DARK, LIGHT = (f'<link rel="stylesheet" href="/{each}.css">' for each in ("dark", "light"))
SCHEME = '<meta name="color-scheme" content="light dark">'
COLOURS = """(it) => {
  const style = getComputedStyle(it);
  return [style.backgroundColor, style.color].map((colour) =>
    colour.match(/[\\d.]+/g).slice(0, 3).reduce((sum, each) => sum + Number(each), 0) / 3);
}"""


@pytest.mark.parametrize("language", ["en", "ar"])
async def test_axe(site: Site, way: Way, open_context: OpenContext, project: OwnProject, language: str) -> None:
    """axe-core finds nothing in any state of the button and its panel."""
    context = await open_context(breaks=True, reduced_motion="reduce", bypass_csp=True)
    page = await context.new_page()
    direction = "rtl" if language == "ar" else "ltr"
    html = f'lang="{language}" dir="{direction}"'
    await page.goto(site.show(f'project-id="{project.id}"', html=html, head=SCHEME))
    await assert_accessible(page)
    await part(page, "button").click()
    await shown_link(page)
    await assert_accessible(page)
    await part(page, "summary").click()
    await assert_accessible(page)
    assert await part(page, "panel").evaluate("(it) => getComputedStyle(it).direction") == direction
    for status in ("cancelled", "expired"):
        way.mode = {"status": status}
        await page.evaluate("dispatchEvent(new Event('online'))")
        await expect(part(page, "retry")).to_be_visible()
        await assert_accessible(page)
        way.mode = "pass"
        await part(page, "retry").click()
        await shown_link(page)
    way.mode = "html"
    await page.evaluate("dispatchEvent(new Event('online'))")
    await expect(part(page, "status")).to_have_text(re.compile("Trying again|إعادة المحاولة"))
    await assert_accessible(page)
    way.mode = {"status": "confirmed", "messenger_id": "1", "messenger_name": "A", "proof": "p", "confirmed_at": "t"}
    await page.evaluate("dispatchEvent(new Event('online'))")
    await expect(part(page, "panel")).to_be_hidden()
    way.mode = "pass"
    await page.evaluate("document.querySelector('taproof-button').setAttribute('project-id', 'proj_doesnotexist0000')")
    await part(page, "button").click()
    await expect(part(page, "detail")).to_be_visible()
    await assert_accessible(page)


async def test_languages(site: Site, open_context: OpenContext, project: OwnProject) -> None:
    """The button has the language of its attribute, of the page, or of the browser, and its direction."""
    failures: list[str] = []
    for language in LANGUAGES:
        context = await open_context(locale=language)
        with case(failures, language):
            direction = "rtl" if language in {"ar", "fa"} else "ltr"
            attribute = f'language="{language.upper()}-XX"'
            page = await go(context, site.show(f'project-id="{project.id}" {attribute}', html='lang="en"'))
            label = await part(page, "label").inner_text()
            assert (label == "Sign in with Telegram") is (language == "en")
            assert await part(page, "button").get_attribute("lang") == language
            assert await part(page, "button").get_attribute("dir") == direction
            for html in (f'lang="{language}"', 'lang="tlh"', ""):
                await page.goto(site.show(f'project-id="{project.id}"', html=html))
                await expect(part(page, "label")).to_have_text(label)
            # It changes with its attribute, and a custom label stays.
            await page.evaluate("document.querySelector('taproof-button').setAttribute('language', 'en')")
            await expect(part(page, "label")).to_have_text("Sign in with Telegram")
            await page.evaluate("document.querySelector('taproof-button').setAttribute('label', '<b>Enter</b>')")
            await expect(part(page, "label")).to_have_text("<b>Enter</b>")
        await context.close()
    assert not failures, "\n".join(failures)


async def test_colour_scheme(site: Site, open_context: OpenContext, project: OwnProject) -> None:
    """The panel is light. It is dark on a dark page, and on a page that can be dark if the user prefers that."""
    context = await open_context(bypass_csp=True)
    failures: list[str] = []
    for prefers, head, dark in (
        ("light", "", False),
        ("dark", "", False),
        ("dark", SCHEME, True),
        ("light", SCHEME, False),
        ("light", DARK, True),
        ("dark", LIGHT, False),
    ):
        with case(failures, (prefers, head)):
            page = await context.new_page()
            await page.emulate_media(color_scheme="dark" if prefers == "dark" else "light")
            await page.goto(site.show(f'project-id="{project.id}"', head=head))
            await start(page)
            background, text = await part(page, "panel").evaluate(COLOURS)
            assert (text - background > 120) is dark
            assert (background - text > 120) is not dark
            await page.close()
    assert not failures, "\n".join(failures)


async def test_forced_colours_and_motion(site: Site, way: Way, open_context: OpenContext, project: OwnProject) -> None:
    """With forced colours, every button has an edge, the QR code stays dark on light, and nothing is animated."""
    context = await open_context(forced_colors="active", color_scheme="dark", reduced_motion="reduce")
    page = await context.new_page()
    way.mode = {"session_token": "a", "deeplink": "https://t.me/shop_bot?start=a", "status": "pending"}
    await page.goto(site.show(f'project-id="{project.id}"'))
    await start(page)
    for name in ("button", "link", "close"):
        edge = await part(page, name).first.evaluate(
            "(it) => { const s = getComputedStyle(it); return s.borderTopColor }"
        )
        assert edge not in {"rgba(0, 0, 0, 0)", "rgb(0, 0, 0)"}, name
    corner = "(it) => [...it.getContext('2d').getImageData(1, 1, 1, 1).data]"
    assert await part(page, "code").evaluate(corner) == [255, 255, 255, 255]
    moves = "(it) => getComputedStyle(it, '::before').animationName"
    assert await part(page, "status").evaluate(moves) == "none"
    await page.emulate_media(reduced_motion="no-preference")
    assert await part(page, "status").evaluate(moves) == "turn"


async def test_narrow_phone_with_large_text(site: Site, open_context: OpenContext, project: OwnProject) -> None:
    """On the narrowest phone, with text twice as large, everything can still be reached."""
    context = await open_context({"width": 320, "height": 568}, bypass_csp=True)
    page = await context.new_page()
    await page.goto(site.show(f'project-id="{project.id}" language="es"'))
    await page.add_style_tag(content="html { font-size: 200% }")
    await start(page, "Iniciar sesión con Telegram")
    await part(page, "summary").click()
    for name in ("link", "copy", "close"):
        await part(page, name).scroll_into_view_if_needed()
        await expect(part(page, name)).to_be_in_viewport()
    too_wide = await part(page, "panel").evaluate("(it) => it.scrollWidth - it.clientWidth")
    assert too_wide <= 0


async def test_languages_of_the_number(site: Site, way: Way, open_context: OpenContext, project: OwnProject) -> None:
    """The text is in the panel's language, and follows it while the number is shown."""
    way.match_code = "42"
    context = await open_context()
    failures: list[str] = []
    for language in LANGUAGES:
        with case(failures, language):
            page = await go(context, site.show(f'project-id="{project.id}" language="{language}"'))
            await part(page, "button").click()
            await shown_link(page)
            words = await part(page, "choose").inner_text()
            assert re.fullmatch(r"\w.+:", words)
            assert ("number in Telegram" in words) is (language == "en")
            other = "en" if language != "en" else "ru"
            await page.evaluate(f"document.querySelector('taproof-button').setAttribute('language', '{other}')")
            await expect(part(page, "choose")).not_to_have_text(words)
            await expect(part(page, "number")).to_have_text("42")
            await page.close()
    assert not failures, "\n".join(failures)

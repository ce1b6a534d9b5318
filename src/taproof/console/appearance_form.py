"""The form for a project's own texts and its logo: its values, the input, and the resulting change."""

import hashlib
from typing import Any, Final

from taproof.console.forms import Form
from taproof.contract.project import DEFAULT, TEXT_LIMITS
from taproof.core.errors import InvalidRequest
from taproof.core.project_texts import ProjectTexts, dump_texts
from taproof.core.projects import Project, ProjectChanges

LABELS: Final = {
    f"texts.{DEFAULT}.prompt_title": "The prompt title",
    f"texts.{DEFAULT}.button_label": "The button label",
    f"texts.{DEFAULT}.confirmed": "The text after Confirm",
    f"texts.{DEFAULT}.cancelled": "The text after Cancel",
    f"texts.{DEFAULT}.expired": "The text of an expired request",
    "texts: ": "Other languages: ",
    "texts.": "Other languages: ",
    "logo_url": "The logo's address",
}
"""The form's labels of fields, by the beginning of an error's sentence."""
_OTHERS: Final = ("other_languages", "was_texts", "logo_url", "was_logo_url")


def shown(project: Project) -> dict[str, Any]:
    """Return the form values for a project."""
    others = [
        f"{language}.{key}: {text}"
        for language, texts in project.texts.items()
        if language != DEFAULT
        for key, text in texts.items()
    ]
    own = project.texts.get(DEFAULT, {})
    texts = {key: own.get(key, "") for key in TEXT_LIMITS}
    logo = {"logo_url": project.logo_url, "was_logo_url": project.logo_url}
    return {**texts, **logo, "other_languages": "\n".join(others), "was_texts": _digest(project.texts)}


def typed(form: Form) -> dict[str, str]:
    """Return the input, to show it again."""
    return {name: form[name] for name in (*TEXT_LIMITS, *_OTHERS)}


def changes(form: Form) -> ProjectChanges:
    """Return only what the visitor changed. Raise InvalidRequest if a line of the other languages cannot be read.

    Another page can have changed the rest meanwhile.
    """
    texts = _read_lines(form["other_languages"])
    if own := {key: form[key] for key in TEXT_LIMITS if form[key]}:
        texts[DEFAULT] = own
    return ProjectChanges(
        texts=None if _digest(texts) == form["was_texts"] else texts,
        logo_url=None if form["logo_url"] == form["was_logo_url"] else form["logo_url"],
    )


def _digest(texts: ProjectTexts) -> str:
    """Return a short value that shows whether the texts have changed. The texts themselves could be 10 KB long."""
    return hashlib.sha256(dump_texts(texts).encode()).hexdigest()[:16]


def _read_lines(lines: str) -> dict[str, dict[str, str]]:
    """Return the texts of lines such as `es.prompt_title: Zona de socios`."""
    texts: dict[str, dict[str, str]] = {}
    for number, line in enumerate(lines.splitlines(), 1):
        if not line.strip():
            continue
        place, colon, text = line.partition(":")
        language, dot, key = place.strip().partition(".")
        if not (colon and dot and text.strip()) or language == DEFAULT or key in texts.get(language, {}):
            raise InvalidRequest(
                f"texts: line {number} must be a language, a dot, the name of a text, a colon and the text, such as "
                "es.prompt_title: Zona de socios. Each name can occur once for each language."
            )
        texts.setdefault(language, {})[key] = text.strip()
    return texts

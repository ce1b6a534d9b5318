"""The project settings form: its values, the input, and the resulting changes."""

from typing import Any, Final, get_args

from taproof.console.forms import Form
from taproof.core.errors import TaproofError
from taproof.core.model import PROJECT_DEFAULTS, PROJECT_FLAGS, Project, ProjectChanges, ProjectEvent
from taproof.core.names import visible_name

_IN_WORDS: Final = {
    "name ": "The name ",
    "webhook_url ": "The webhook URL ",
    "collect_phone ": "Phone collection ",
    "allowed_origins": "Pages that may start sign-ins",
    "return_urls": "Other addresses to return to",
    "same_device ": "Same device ",
    "webhook_events ": "The webhook events ",
    "bot_token ": "The token ",
}
"""The beginnings of API error sentences about a field, with the form's own wording."""
_IN_FORM: Final = {', or "" for none': "", 'set webhook_url to ""': "leave the webhook URL empty"}
"""The texts about empty values in these sentences, as the form calls them."""
NEW: Final = {"name": "", **PROJECT_DEFAULTS.given()}
"""The form values for a new project."""


def shown(project: Project) -> dict[str, Any]:
    """Return the form values for a project."""
    flags = {flag: getattr(project, flag) for flag in PROJECT_FLAGS}
    names = ("webhook_url", "allowed_origins", "webhook_events", "same_device", "return_urls")
    others = {name: getattr(project, name) for name in names}
    return {"name": visible_name(project.name), **others, **flags}


def typed(form: Form, prefix: str = "") -> dict[str, Any]:
    """Return the input, to show it again. With the prefix `was_`, return the values that the form showed."""
    flags = {flag: form.is_checked(prefix + flag) for flag in PROJECT_FLAGS}
    return {
        "name": visible_name(form[f"{prefix}name"]),
        "webhook_url": form[f"{prefix}webhook_url"],
        "allowed_origins": tuple(form[f"{prefix}allowed_origins"].split()),
        "same_device": form[f"{prefix}same_device"] or "off",
        "return_urls": tuple(form[f"{prefix}return_urls"].split()),
        "webhook_events": tuple(event for event in get_args(ProjectEvent) if form.is_checked(prefix + event)),
        **flags,
    }


def new(form: Form) -> ProjectChanges:
    """Return the settings of a new project. A new project is always active, so its form has no field for that."""
    return ProjectChanges(**{**typed(form), "name": form["name"], "is_active": True})


def changes(form: Form) -> ProjectChanges:
    """Return only the fields that the visitor changed. Another page can have changed the other fields meanwhile."""
    before, after = typed(form, "was_"), typed(form)
    # Use the name as typed: invisible characters are refused, not dropped.
    before["name"], after["name"] = form["was_name"], form["name"]
    return ProjectChanges(**{field: value for field, value in after.items() if value != before[field]})


def in_words(error: TaproofError) -> str:
    """Return an error's sentence, with the field name used in the form."""
    for field, words in _IN_WORDS.items():
        if error.sentence.startswith(field):
            sentence = error.sentence
            for text, in_form in _IN_FORM.items():
                sentence = sentence.replace(text, in_form)
            return words + sentence.removeprefix(field)
    return error.sentence

"""The project settings form: its values, the input, and the resulting changes."""

from typing import Any, Final, get_args

from taproof.console import forms
from taproof.console.forms import Form
from taproof.contract.fields import described
from taproof.contract.project import ProjectEvent, ProjectUpdate
from taproof.core.errors import TaproofError
from taproof.core.names import visible_name
from taproof.core.projects import PROJECT_DEFAULTS, PROJECT_FLAGS, Project, ProjectChanges

BOXES: Final = {name: field.box for name, (_, field) in described(ProjectUpdate).items() if field.box}
"""The check boxes of the form, by setting."""
_LABELS: Final = {
    "name ": "The name ",
    "webhook_url ": "The webhook URL ",
    "collect_phone ": "Phone collection ",
    "allowed_origins": "Pages that may start sign-ins",
    "return_urls": "Addresses to return to",
    "same_device ": "Same device ",
    "webhook_events ": "The webhook events ",
    "bot_token ": "The token ",
}
"""The form's labels of fields, by the beginning of an error's sentence."""
_IN_FORM: Final = {', or "" for none': "", 'set webhook_url to ""': "leave the webhook URL empty"}
"""The texts about empty values in these sentences, as the form calls them."""


def shown(project: Project) -> dict[str, Any]:
    """Return the form values for a project."""
    return {"name": visible_name(project.name)} | {field: getattr(project, field) for field in PROJECT_DEFAULTS.given()}


def typed(form: Form) -> dict[str, Any]:
    """Return the input of the fields that the form contained, to show it again."""
    flags = {flag: form.is_checked(flag) for flag in PROJECT_FLAGS}
    values = {
        "name": visible_name(form["name"]),
        "webhook_url": form["webhook_url"],
        "allowed_origins": tuple(form["allowed_origins"].split()),
        "same_device": form["same_device"] or "off",
        "return_urls": tuple(form["return_urls"].split()),
        "webhook_events": tuple(event for event in get_args(ProjectEvent) if form.is_checked(event)),
        **flags,
    }
    return _sent(form, values)


def was(form: Form) -> dict[str, Any]:
    """Return the values that the form showed before it was filled in."""
    flags = {flag: form.is_checked(f"was_{flag}") for flag in PROJECT_FLAGS}
    values = {name: form[f"was_{name}"] for name in ("name", "webhook_url", "same_device")}
    lists = {name: tuple(form[f"was_{name}"].split()) for name in ("allowed_origins", "return_urls", "webhook_events")}
    return _sent(form, values | lists | flags)


def _sent(form: Form, values: dict[str, Any]) -> dict[str, Any]:
    """Return only the fields that the form contained.

    Each field is sent with the value that it showed. Browsers send neither if the field is disabled, and the page has
    more than one form.
    """
    return {field: value for field, value in values.items() if f"was_{field}" in form}


def changes(form: Form) -> ProjectChanges:
    """Return only the fields that the visitor changed. Another page can have changed the other fields meanwhile."""
    before, after = was(form), typed(form)
    if "name" in after:
        # Use the name as typed: invisible characters are refused, not dropped.
        after["name"] = form["name"]
    return ProjectChanges(**{field: value for field, value in after.items() if value != before[field]})


def in_words(error: TaproofError) -> str:
    """Return an error's sentence in the words of the form."""
    sentence = forms.in_words(error, _LABELS)
    for text, in_form in _IN_FORM.items():
        sentence = sentence.replace(text, in_form)
    return sentence

"""The sentences of each language, loaded from the TOML files in this directory.

A sentence is plain text that is sent as HTML, so it contains no `<`, `>` or `&`. Ages use words or units that need no
plural forms. Names, times and places are inserted as isolates, so their position in a right-to-left sentence is free.
"""

from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated, Final

from taproof.core.text_files import read_text_file


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextTexts:
    """The lines of a prompt that show the origin of the request.

    In this class and the next ones, the names in `Annotated` are the placeholders of a sentence. Each must occur.
    """

    page_line: Annotated[str, "page"]
    """`{page}` is the domain of the page, or `page_not_told`."""
    page_not_told: str
    """For a browser that does not send the page's address."""
    browser_line: Annotated[str, "browser"]
    """`{browser}` is the name of a browser, or `browser_on`."""
    place_line: Annotated[str, "place"]
    """`{place}` is a town and its country, in English."""
    browser_on: Annotated[str, "browser", "system"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhoneTexts:
    """The question for a phone number. `{share}`, `{without}` and `{cancel}` are labels of buttons."""

    prompt: Annotated[str, "project", "share", "cancel"]
    """Replaces the prompt that was confirmed, if the project requires a number."""
    prompt_optional: Annotated[str, "project", "share", "without", "cancel"]
    """Replaces the prompt that was confirmed, if the user may decline."""
    share_button: str
    without_button: str
    keyboard: Annotated[str, "project"]
    """The message that shows the button."""
    notice: str
    """Shown in a pop-up of at most 200 characters; so is `over`."""
    wrong: Annotated[str, "share"]
    """For a contact that is not the user's own."""
    unasked: str
    over: str
    """The message that removes the button if no number was shared."""
    removed: str
    """The message that removes the button after a contact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlTexts:
    """The replies to users who list or report sign-ins, or block or unblock projects.

    `{not_me}` and `{unblock}` are labels of buttons. The `…_notice` sentences and `gone` are also shown in a pop-up of
    at most 200 characters.
    """

    not_me_button: str
    unblock_button: str
    sessions_command: str
    """The description of /sessions in the messenger's list of commands. The next two describe /block and /unblock."""
    block_command: str
    unblock_command: str
    sessions: Annotated[str, "not_me"]
    """The heading of the list."""
    no_sessions: str
    already_reported: str
    """Shown below a reported sign-in in the list."""
    reported: Annotated[str, "project", "unblock"]
    """For a sign-in whose result was not received."""
    reported_used: Annotated[str, "project", "unblock"]
    """For a sign-in whose result was received, or may have been."""
    reported_developer: Annotated[str, "project", "unblock"]
    """For a developer's own sign-in to the service. docs/explanation/rights.md lists the effects of the report."""
    reported_notice: str
    block: str
    """The heading of the projects to choose from; `unblock` is the same for unblocking."""
    nothing_to_block: Annotated[str, "not_me"]
    blocked: Annotated[str, "project"]
    blocked_notice: str
    unblock: str
    nothing_to_unblock: str
    unblocked: Annotated[str, "project"]
    unblocked_notice: str
    blocked_link: Annotated[str, "project", "unblock"]
    """For a link to a project that the user has blocked."""
    gone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """Every sentence of one language.

    The `…_notice` sentences, `foreign`, `unknown`, `stale_button`, `renewed` and `cannot_verify` are also shown in a
    pop-up of at most 200 characters. `{n}` is 5 to 119 in `seconds_ago`, and at least 2 in `minutes_ago`.
    """

    language: str
    """Its key in `LANGUAGES`."""
    confirm_button: str
    cancel_button: str
    back_button: Annotated[str, "project"]
    """Opens the page where the sign-in began."""
    prompt: Annotated[str, "project", "context", "age", "choose", "cancel"]
    """`{context}` is the lines of `ContextTexts`, `{choose}` is `choose_code` or nothing, `{cancel}` is a label."""
    choose_code: Annotated[str, "cancel"]
    """Three numbers replace Confirm."""
    just_now: str
    seconds_ago: Annotated[str, "n"]
    minutes_ago: Annotated[str, "n"]
    confirmed: Annotated[str, "project", "when"]
    confirmed_next: str
    """Follows `confirmed`, unless the project has a text of its own; so does `expired_next` for `expired`."""
    returning: Annotated[str, "project", "back"]
    """For a session that was confirmed and requires the user to return. `{back}` is the label of the button."""
    cancelled: Annotated[str, "project", "when"]
    withdrawn: Annotated[str, "project", "when"]
    """For a request that the website or app cancelled, and not the user."""
    mismatched: Annotated[str, "project", "when"]
    expired: Annotated[str, "project"]
    expired_next: str
    confirmed_notice: Annotated[str, "when"]
    returning_notice: str
    cancelled_notice: Annotated[str, "when"]
    withdrawn_notice: Annotated[str, "when"]
    mismatched_notice: Annotated[str, "when"]
    expired_notice: str
    foreign: str
    unknown: str
    stale_button: str
    """For a button that this service did not make for this message, or that an earlier release made."""
    renewed: str
    """For a genuine button of a message that could not be checked. Also the text that replaces such a message."""
    cannot_verify: str
    """The same, once fresh messages have not helped."""
    help: str
    too_many: str
    """For a user who opened too many links."""
    private_only: str
    context: ContextTexts
    phone: PhoneTexts
    control: ControlTexts


def load_texts(file_name: str, content: str) -> Texts:
    """Return the texts of one language file; `core.text_files` lists the errors."""
    return read_text_file(Texts, file_name, content)


FALLBACK: Final = "en"
"""The language for users whose own language has no file."""


def _load_languages() -> dict[str, Texts]:
    loaded = {
        file.name.removesuffix(".toml"): load_texts(file.name, file.read_text(encoding="utf-8"))
        for file in files("taproof.messengers.texts").iterdir()
        if file.name.endswith(".toml")
    }
    return dict(sorted(loaded.items(), key=lambda each: (each[0] != FALLBACK, each[0])))


LANGUAGES: Final = _load_languages()
"""The texts by language code, which is the first part of an IETF language tag. English comes first."""


def known_language(language_code: str | None) -> str:
    """Return the key in `LANGUAGES` for a user's `language_code`, such as `pt-br`; `en` if it is missing or unknown."""
    language = (language_code or "").partition("-")[0].lower()
    return language if language in LANGUAGES else FALLBACK


def texts_for(language_code: str | None) -> Texts:
    """Return the texts for a user's `language_code`, as `known_language` defines it."""
    return LANGUAGES[known_language(language_code)]

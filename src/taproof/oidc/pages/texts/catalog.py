"""The sentences of each language, loaded from the TOML files in this directory.

The names in `Annotated` are the placeholders of a sentence. Each must occur. `{project}` and `{client}` are names that
people choose; they are inserted as isolates, so their position in a right-to-left sentence is free.
"""

from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated, Final, Literal

from taproof.core.text_files import read_text_file


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingTexts:
    """The sign-in page while the user has not decided."""

    heading: Annotated[str, "project"]
    lead: str
    expected: Annotated[str, "client"]
    """If the application named the account that must confirm. Its id and name are not shown: strangers see the page."""
    open_button: str
    """Opens the messenger on this device."""
    scan: str
    """Below the QR code, which is for another device."""
    qr_code: str
    """Describes the QR code to screen readers."""
    match_code: str
    """Before a number, which the user chooses out of three in the messenger."""
    status: str
    """While nobody has opened the link. The next three replace it, by the hint of the session."""
    opened: str
    choosing: Annotated[str, "code"]
    phone_asked: str
    same_device: str
    """Instead of the QR code, if the sign-in must end in the browser in which it began."""
    stuck: str
    """Opens the next two, for messengers that lose the code of the link."""
    send: str
    """Before the command to send to the bot."""
    copy_button: str
    offline: str
    """Replaces `status` while the page cannot reach the service."""
    time_left: Annotated[str, "time"]
    """`{time}` is `minutes`, or such as `9:41`."""
    minutes: Annotated[str, "n"]
    """Needs no plural forms: `{n}` is 0 to 10."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturningTexts:
    """The sign-in page after Confirm, while the messenger has not yet led the user back to the browser."""

    heading: str
    lead: Annotated[str, "project"]
    """Names the button of the bot."""
    status: str
    cancel_button: str
    """Goes back to the application without signing in. It is not named as the button of the bot, which signs in."""
    no_scripts: Annotated[str, "project"]
    """On the page to which the messenger leads, which cannot read its return code without a script."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElsewhereTexts:
    """The page to which the messenger leads, in another browser than the one in which the sign-in began."""

    heading: str
    text: str
    signed_in: str
    """Replaces everything below the heading if the sign-in does not need the address."""
    label: str
    copy_button: str
    copied: str
    no_scripts: str
    """Without scripts, the page cannot copy its address."""
    warning: str
    """The defence against a sign-in that an attacker began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAllowedTexts:
    """The sign-in page of an account that is in none of the groups that may sign in to the client."""

    heading: str
    text: Annotated[str, "client"]
    id: str
    """Before the account's id, which the user tells the people who manage the groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedTexts:
    """The sign-in page in a state in which nothing more will happen."""

    heading: str
    text: Annotated[str, "project"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedTexts:
    """The sign-in page after the result was sent to the application, for a user who comes back to it."""

    heading: str
    text: str
    text_with_client: Annotated[str, "client"]
    """Replaces `text` if the application has a page to return to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnavailableTexts:
    """The sign-in page if the user cannot sign in now, by the reason."""

    heading: str
    paused: Annotated[str, "project"]
    bot_broken: Annotated[str, "project"]
    limit: Annotated[str, "project"]
    try_later: str
    blocked: str
    """The user has blocked the bot in the messenger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnTexts:
    """The page that takes the result to the application (OAuth 2.0 Form Post Response Mode)."""

    heading: str
    text: Annotated[str, "button"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemTexts:
    """The page for a request that cannot be answered by sending the user back to the application."""

    heading: str
    unknown_client: str
    redirect_uri: str
    """The redirect URI is missing, or is not registered for the client."""
    request: str
    unknown_sign_in: str
    """For an address of a sign-in that does not exist, or that belongs to another browser."""
    too_many: str
    failure: str
    """The service has a fault, or cannot reach its database."""
    detail: str
    """The label of a technical sentence in English."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedOutTexts:
    """The page to which an application sends its users when they sign out there."""

    heading: str
    text: Annotated[str, "client"]
    nothing_heading: str
    nothing: str
    """The application did not say which user signs out."""
    problem_heading: str
    problem: str
    """The application's request was wrong, so the user cannot be sent back to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTexts:
    """The pages of the device grant (RFC 8628): the form for the code, and the question whether it is the user's."""

    heading: str
    lead: str
    label: str
    hint: Annotated[str, "example"]
    unknown: str
    too_many: str
    confirm_heading: Annotated[str, "project"]
    question: str
    """Above the code."""
    warning: Annotated[str, "cancel"]
    """The defence against a code that an attacker sends (RFC 8628, section 5.4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """Every sentence of one language."""

    direction: Literal["ltr", "rtl"]
    application: Annotated[str, "client"]
    """Names the client if its name is not the project's."""
    start_again_button: str
    back_button: Annotated[str, "client"]
    continue_button: str
    cancel_button: str
    waiting: WaitingTexts
    returning: ReturningTexts
    elsewhere: ElsewhereTexts
    not_allowed: NotAllowedTexts
    cancelled: EndedTexts
    expired: EndedTexts
    device_done: EndedTexts
    """The user has signed in on another device."""
    finished: FinishedTexts
    unavailable: UnavailableTexts
    form_post: ReturnTexts
    problem: ProblemTexts
    signed_out: SignedOutTexts
    device: DeviceTexts


LANGUAGES: Final = {
    file.name.removesuffix(".toml"): read_text_file(Texts, file.name, file.read_text(encoding="utf-8"))
    for file in files("taproof.oidc.pages.texts").iterdir()
    if file.name.endswith(".toml")
}
"""The texts by language code, which is the first part of an IETF language tag."""

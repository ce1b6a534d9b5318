"""Render templates into pages, and list the headers and the files that the pages need.

A template receives `texts`, the language's sentences, and `say` and `plain`, which insert the names into a sentence:
`say` for HTML, `plain` for `<title>`, which contains no elements. Everything is escaped.
"""

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from taproof.core.brand import Brand
from taproof.core.logo_url import logo_origin
from taproof.core.names import isolated_name, visible_name
from taproof.core.project_texts import ProjectTexts, own_text
from taproof.core.sessions import Hint
from taproof.core.webhook_url import is_loopback
from taproof.oidc.pages.texts.catalog import LANGUAGES

SignInState = Literal[
    "waiting", "returning", "not_allowed", "cancelled", "expired", "finished", "device_done", "unavailable"
]
UnavailableReason = Literal["paused", "bot_broken", "limit", "try_later", "blocked"]
ProblemKey = Literal["unknown_client", "redirect_uri", "request", "unknown_sign_in", "too_many", "failure"]
SignedOutOutcome = Literal["text", "nothing", "problem"]
DeviceProblem = Literal["unknown", "too_many"]

_STATIC: Final = files("taproof.oidc.pages") / "static"
_TYPES: Final = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_FILES: Final = {
    file.name: (file.read_bytes(), _TYPES[file.name[file.name.rindex(".") :]]) for file in _STATIC.iterdir()
}
_DEVICE_CODE_EXAMPLE: Final = "WDJB-MJHT"
"""The user code of the examples in RFC 8628."""
_NAME: Final = Markup("<bdi>{}</bdi>")


@dataclass(frozen=True, slots=True)
class SignInView:
    """The content of the sign-in page.

    Args:
        state: the state of the sign-in.
        authorization_id: the part of the page's path that names the authorization.
        project_name: the project's name, as its developer wrote it.
        client_name: the client's name, likewise.
        deeplink: the link that opens the messenger. Needed while the sign-in can go on.
        match_code: the number to choose in the messenger, if the project uses match codes.
        seconds_left: the time until the sign-in expires, in the states `waiting` and `returning`.
        reason: the reason for the state `unavailable`.
        can_start_again: whether the page offers to start again, unless the state is `waiting`.
        application_url: whether there is a page of the application to go back to; the device grant has none.
        hint: what the sign-in waits for, in the state `waiting`.
        return_required: whether the sign-in must end in the browser in which it began. The page then shows no QR code.
        expects_account: whether only one account may confirm: the one that used the application before.
        texts: the project's own texts.
        logo_url: the project's logo; "" for none.
        messenger_id: the account that confirmed, in the state `not_allowed`.
    """

    state: SignInState
    authorization_id: str
    project_name: str
    client_name: str
    deeplink: str | None = None
    match_code: str | None = None
    seconds_left: int = 0
    reason: UnavailableReason | None = None
    can_start_again: bool = False
    application_url: bool = False
    hint: Hint = "waiting"
    return_required: bool = False
    expects_account: bool = False
    texts: ProjectTexts = field(default_factory=dict)
    logo_url: str = ""
    messenger_id: str | None = None

    @property
    def is_live(self) -> bool:
        """Return whether the sign-in can still go on. The page then waits for its next state."""
        return self.state in {"waiting", "returning"} or self.seen == "unreachable"

    @property
    def can_scan(self) -> bool:
        """Return whether the page shows the link's QR code. A phone cannot open a link to this machine."""
        is_shown = self.state == "waiting" and not self.return_required and self.deeplink is not None
        return is_shown and not is_loopback(urlsplit(self.deeplink or "").hostname or "")

    @property
    def start_command(self) -> str:
        """The message that does the same as the link, for messengers that lose the link's code; "" if none can help."""
        if self.state != "waiting" or self.hint != "waiting" or self.deeplink is None:
            return ""
        return f"/start {self.deeplink.rpartition('?start=')[2]}"

    @property
    def seen(self) -> str:
        """The state of the sign-in (`service.oidc.sign_in.PageState`) that a live page shows."""
        return "unreachable" if self.state == "unavailable" and self.reason == "blocked" else self.state

    @property
    def sentence(self) -> str:
        """The key of the sentence below the heading, in the section of the texts that `state` names."""
        if self.state == "finished":
            return "text_with_client" if self.application_url else "text"
        return {"waiting": "lead", "returning": "lead", "unavailable": self.reason or "try_later"}.get(
            self.state, "text"
        )


class Pages:
    """Renders the pages.

    Args:
        brand: the operator's name and logo, shown below each page. The software's own name is not shown.
        base_path: the path of the OpenID endpoints.
        device_path: the path of the page on which users type the code of a device.
    """

    def __init__(
        self,
        brand: Brand = Brand(),  # noqa: B008 — it cannot change.
        base_path: str = "/oidc",
        device_path: str = "/device",
    ) -> None:
        self._base_path = base_path
        self.brand: Final = brand
        self.logo_path: Final = f"{base_path}/static/logo"
        """The path of the operator's logo, if there is one."""
        self._environment = Environment(
            loader=PackageLoader("taproof.oidc.pages"),
            autoescape=True,
            undefined=StrictUndefined,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.globals |= {
            "base_path": base_path,
            "device_path": device_path,
            "static": self._static_url,
            "isolate": _NAME.format,
            "brand": brand,
            "has_brand": brand != Brand(),
            "icon": self._icon_url(),
        }

    def load_templates(self) -> None:
        """Compile all templates, so that no page compiles one on the event loop."""
        for name in self._environment.list_templates(["html"]):
            self._environment.get_template(name)

    def sign_in(self, view: SignInView, language: str) -> bytes:
        """Return the sign-in page. The page reloads itself when its state changes."""
        names = {"project": view.project_name, "client": view.client_name}
        status = self.status_text(view.hint, view.match_code, language)
        label = visible_name(own_text(view.texts, language, "button_label"))
        return self._render(
            "sign_in.html", language, names, view=view, status=status, own_label=label, logo_url=view.logo_url
        )

    @staticmethod
    def status_text(hint: Hint, match_code: str | None, language: str) -> str:
        """Return the sentence that says what a sign-in waits for."""
        texts = LANGUAGES[language]
        match hint:
            case "opened":
                return texts.waiting.opened
            case "choosing":
                return texts.waiting.choosing.format(code=match_code)
            case "phone_asked":
                return texts.waiting.phone_asked
            case "return":
                return texts.returning.status
            case "unreachable":
                return ""  # The page says why nothing can be confirmed now.
            case _:
                return texts.waiting.status

    def back_in_browser(self, authorization_id: str, project_name: str, language: str, *, logo_url: str = "") -> bytes:
        """Return the page to which the messenger leads. Its script sends the return code from the address."""
        names = {"project": project_name}
        return self._render("return.html", language, names, authorization_id=authorization_id, logo_url=logo_url)

    def elsewhere(self, language: str, *, is_signed_in: bool = False) -> bytes:
        """Return this page for another browser than the one in which the sign-in began.

        Args:
            language: the language.
            is_signed_in: whether the sign-in is finished where it began, without this page's address.
        """
        return self._render("elsewhere.html", language, {}, is_signed_in=is_signed_in)

    def form_post(self, action: str, fields: Mapping[str, str], language: str) -> bytes:
        """Return the page that posts `fields` to the application (OAuth 2.0 Form Post Response Mode)."""
        return self._render("form_post.html", language, {}, action=action, fields=fields)

    def problem(self, sentence_key: ProblemKey, detail: str, language: str) -> bytes:
        """Return the page for a request that must not be answered with a redirect; `detail` is technical English."""
        return self._render("problem.html", language, {}, sentence_key=sentence_key, detail=detail)

    def signed_out(self, outcome: SignedOutOutcome, language: str, client_name: str = "", detail: str = "") -> bytes:
        """Return the page for a user who signs out in an application.

        Args:
            outcome: "text": the user is signed out. "nothing": the application did not say who signs out. "problem": it
                made a mistake.
            language: the language.
            client_name: the application.
            detail: the mistake, in technical English.
        """
        return self._render("signed_out.html", language, {"client": client_name}, outcome=outcome, detail=detail)

    def device_code(self, language: str, user_code: str = "", problem: DeviceProblem | None = None) -> bytes:
        """Return the form for the code that a device shows; `problem` says why `user_code` was not accepted."""
        return self._render(
            "device_code.html", language, {}, user_code=user_code, problem=problem, example=_DEVICE_CODE_EXAMPLE
        )

    def device_confirm(
        self, language: str, user_code: str, project_name: str, client_name: str, *, logo_url: str = ""
    ) -> bytes:
        """Return the question whether the code is shown on the user's own device (RFC 8628, section 5.4)."""
        names = {"project": project_name, "client": client_name}
        return self._render(
            "device_confirm.html",
            language,
            names,
            user_code=user_code,
            project_name=project_name,
            client_name=client_name,
            logo_url=logo_url,
        )

    @staticmethod
    def headers(*, leaves: bool = False, logo_url: str = "") -> list[tuple[bytes, bytes]]:
        """Return the headers of every page.

        Args:
            leaves: whether one of the page's forms leads to the application: directly (`form_post`), or by a redirect
                (`sign_in`, to leave the sign-in). Its policy then has no form-action.
            logo_url: the logo on the page; "" for none. Images may come from its origin and from no other.

        Chromium and Safari apply form-action to every redirect after a form, and Firefox to none. Applications redirect
        on to other origins, and to the schemes of their apps, which only they know; so no list can name them. All names
        on a page are escaped, and its other forms name this service.
        """
        form_action = "" if leaves else "form-action 'self'; "
        images = f"'self' {logo_origin(logo_url)}".rstrip()
        policy = (
            f"default-src 'none'; script-src 'self'; style-src 'self'; img-src {images}; connect-src 'self'; "
            f"{form_action}base-uri 'none'; frame-ancestors 'none'"
        )
        return [
            (b"content-security-policy", policy.encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"x-frame-options", b"DENY"),
            # Not no-referrer: browsers would then send `Origin: null` with forms, which `is_same_origin` refuses.
            (b"referrer-policy", b"same-origin"),
            # No cross-origin-opener-policy: an application that opens the page in a popup waits for its window.
            (b"cross-origin-resource-policy", b"same-origin"),
            (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
            (b"cache-control", b"no-store"),
        ]

    @staticmethod
    def static_file(name: str) -> tuple[bytes, str] | None:
        """Return the content and the content type of a file below `{base_path}/static/`; None if there is none.

        Pages link to files by URLs that change with the content, so browsers can cache the files forever.
        """
        return _FILES.get(name)

    def _static_url(self, name: str) -> str:
        return f"{self._base_path}/static/{name}?{_digest(name)}"

    def _icon_url(self) -> str:
        """Return the URL of the operator's logo, or of the software's."""
        if self.brand.logo is None:
            return self._static_url("icon.svg")
        return f"{self.logo_path}?{hashlib.sha256(self.brand.logo.content).hexdigest()[:12]}"

    def _render(self, template: str, language: str, names: Mapping[str, str], **context: Any) -> bytes:
        own = {
            "language": language,
            "texts": LANGUAGES[language],
            "say": functools.partial(_say, names),
            "plain": functools.partial(_plain, names),
        }
        return self._environment.get_template(template).render(own | context).encode()


@functools.cache
def _digest(name: str) -> str:
    return hashlib.sha256(_FILES[name][0]).hexdigest()[:12]


def _say(names: Mapping[str, str], sentence: str, **parts: object) -> Markup:
    """Return a sentence for HTML with the names, isolated, and other parts of the page in their places."""
    shown = {key: _NAME.format(visible_name(name)) for key, name in names.items()}
    return escape(sentence).format(**shown, **parts)


def _plain(names: Mapping[str, str], sentence: str) -> str:
    """Return a sentence with the names as plain text."""
    return sentence.format(**{key: isolated_name(name) for key, name in names.items()})

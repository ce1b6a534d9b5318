"""One page of each kind, for the tests of all pages."""

from collections.abc import Callable
from typing import Any, get_args

from taproof.oidc.pages.rendering import (
    DeviceProblem,
    Pages,
    ProblemKey,
    SignedOutOutcome,
    SignInState,
    SignInView,
    UnavailableReason,
)

DEEPLINK = "https://t.me/taproof_bot?start=" + "aB3_" * 10 + "xyz"
REDIRECT_URI = "https://shop.example/callback"
PAGES = Pages()
Render = Callable[[str], bytes]


def a_view(state: SignInState = "waiting", **changes: Any) -> SignInView:
    shown: dict[str, Any] = {
        "authorization_id": "auth_1",
        "project_name": "Ada’s Bookshop",
        "client_name": "Grafana",
        "deeplink": DEEPLINK,
        "match_code": None,
        "seconds_left": 599,
        "reason": "try_later" if state == "unavailable" else None,
        "can_start_again": True,
        "application_url": True,
    }
    return SignInView(state, **shown | changes)


def _sign_in(state: SignInState, **changes: Any) -> Render:
    return lambda language: PAGES.sign_in(a_view(state, **changes), language)


def _problem(key: ProblemKey) -> Render:
    return lambda language: PAGES.problem(key, "redirect_uri is not registered for this client.", language)


def _signed_out(outcome: SignedOutOutcome) -> Render:
    detail = "post_logout_redirect_uri is not registered." if outcome == "problem" else ""
    return lambda language: PAGES.signed_out(outcome, language, "Ada’s Bookshop", detail)


def _device_code(problem: DeviceProblem | None) -> Render:
    return lambda language: PAGES.device_code(language, "wdjb-mj", problem)


EACH: dict[str, Render] = {
    **{state: _sign_in(state) for state in get_args(SignInState)},
    **{reason: _sign_in("unavailable", reason=reason) for reason in get_args(UnavailableReason)},
    "blocked": _sign_in("unavailable", reason="blocked", hint="unreachable"),
    **{f"problem {key}": _problem(key) for key in get_args(ProblemKey)},
    **{f"signed out {outcome}": _signed_out(outcome) for outcome in get_args(SignedOutOutcome)},
    **{f"device code {problem}": _device_code(problem) for problem in (None, *get_args(DeviceProblem))},
    "match code": _sign_in("waiting", match_code="42", client_name="Ada’s Bookshop"),
    "device": _sign_in("waiting", application_url=False),
    **{hint: _sign_in("waiting", hint=hint, match_code="42") for hint in ("opened", "choosing", "phone_asked")},
    "expected account": _sign_in("waiting", expects_account=True),
    "same device": _sign_in("waiting", return_required=True),
    "back in the browser": lambda language: PAGES.back_in_browser("auth_1", "Ada’s Bookshop", language),
    "elsewhere": PAGES.elsewhere,
    "signed in elsewhere": lambda language: PAGES.elsewhere(language, is_signed_in=True),
    "device confirm": lambda language: PAGES.device_confirm(language, "WDJB-MJHT", "Ada’s Bookshop", "Living-room TV"),
    "form post": lambda language: PAGES.form_post(REDIRECT_URI, {"code": "c", "state": "s"}, language),
}
"""Every state, reason and problem, by a name that failures show."""

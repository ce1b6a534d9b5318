"""Sign-in for Django, with Django's own session.

    MIDDLEWARE = [… SessionMiddleware, …, "taproof.integrations.django.TaproofMiddleware"]
    urlpatterns = [path("auth/", include("taproof.integrations.django")), …]

This adds `POST /auth/taproof`, `POST /auth/taproof/sign-out` and `request.taproof_identity`. With
`taproof.integrations.django_auth.MessengerBackend` in AUTHENTICATION_BACKENDS, `request.user` is signed in too. In that
case, use `request.user` to check permissions: `request.taproof_identity` stays set when an account is deactivated.

Settings:
    TAPROOF_BASE_URL, TAPROOF_PROJECT_ID, TAPROOF_WEBHOOK_SECRET: see `TaproofSettings`.
    TAPROOF_GUARD: accepts each proof only once, such as `SqliteGuard(BASE_DIR / "proofs.db")`. Without it, a cache is
        used, which all processes must share: Redis, Memcached or the database. If a full cache drops entries, a proof
        could be accepted again within its five minutes, so make the cache large enough. For a database cache, set
        OPTIONS MAX_ENTRIES to 100,000 or more (Django's default is 300). Unsuitable caches are refused at startup.
    TAPROOF_CACHE: the name of that cache, "default" by default.

The context processor `taproof.integrations.django.for_templates` adds `taproof` to every template, with `base_url`,
`script_url` and `project_id`. Behind a proxy, set SECURE_PROXY_SSL_HEADER, and USE_X_FORWARDED_HOST if needed.
"""

import hashlib
import time
from collections.abc import Callable
from typing import Any, Final

from django.apps import apps
from django.conf import settings
from django.core.cache import caches
from django.core.cache.backends.db import BaseDatabaseCache
from django.core.cache.backends.dummy import DummyCache
from django.core.cache.backends.filebased import FileBasedCache
from django.core.cache.backends.locmem import LocMemCache
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.utils.functional import SimpleLazyObject
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_POST

from taproof.integrations.endpoint import (
    CHUNK,
    HEADERS,
    NAMES,
    SESSION_KEY,
    Body,
    EndpointRequest,
    EndpointResponse,
    SettingsError,
    SignedIn,
    SignInEndpoint,
    TaproofSettings,
    refused_account,
)
from taproof.sdk.guard import SingleUseGuard

_MARGIN: Final = 60
"""Seconds that a proof is remembered after its expiry, because clocks differ."""
_ROOM: Final = 100_000
"""Minimum MAX_ENTRIES of a database cache: beyond its limit, Django drops entries that are still needed."""


class TaproofMiddleware:
    """Sets `request.taproof_identity` to a `SignedIn` or a false value, which reads the session only when it is used.

    Test it with `if request.taproof_identity`. It is a lazy object, so `is None` is never true.

    Raises:
        ImproperlyConfigured: a setting is missing or invalid. Servers create the middleware when they start.
    """

    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response
        _endpoint()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Set `request.taproof_identity` and call the next handler."""
        request.taproof_identity = SimpleLazyObject(lambda: current_identity(request))
        return self._get_response(request)


class CacheGuard:
    """Accepts each proof only once, using a Django cache with an atomic `add`, for all processes that share it."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def take(self, session_token: str, expires_at: int) -> bool:
        """See `SingleUseGuard`."""
        key = f"taproof-proof-{hashlib.sha256(session_token.encode()).hexdigest()}"
        seconds = max(0, expires_at - int(time.time())) + _MARGIN  # noqa: TID251 — the SDK has no clock module.
        return bool(self._cache.add(key, 1, seconds))


def current_identity(request: HttpRequest) -> SignedIn | None:
    """Return the signed-in user, or None if nobody is signed in."""
    return SignedIn.from_session(request.session.get(SESSION_KEY))


def for_templates(_: HttpRequest) -> dict[str, dict[str, str]]:
    """Return the template variable `taproof`, with the values for the button. This is a context processor."""
    return {"taproof": _settings().for_pages}


def _sign_in(request: HttpRequest) -> HttpResponse:
    """Check a proof and start a new session for its user."""
    answer = _endpoint().sign_in(_asked(request))
    if answer.session is not None and not _start_session(request, answer.session):
        answer = refused_account()
    return _response(answer)


def _sign_out(request: HttpRequest) -> HttpResponse:
    """End the session, and sign out `request.user`."""
    answer = _endpoint().sign_out(_asked(request))
    if answer.session is not None:
        if apps.is_installed("django.contrib.auth"):
            # Imported here, because the import fails if django.contrib.auth is not installed. `logout` also sends
            # Django's signal.
            from django.contrib.auth import logout  # noqa: PLC0415

            logout(request)
        else:
            request.session.flush()
    return _response(answer)


# Django's CSRF token is not needed: the endpoint itself refuses requests from other sites (endpoint.py, _refusal). That
# also works for pages that were cached without a token. `sensitive_variables` keeps the proof and the secret out of
# the error reports that Django sends by e-mail.
urlpatterns = [
    path("taproof", sensitive_variables()(csrf_exempt(require_POST(_sign_in))), name="taproof_sign_in"),
    path("taproof/sign-out", csrf_exempt(require_POST(_sign_out)), name="taproof_sign_out"),
]


def _start_session(request: HttpRequest, content: dict[str, Any]) -> bool:
    """End the previous session and start a new, empty one. Return False if the application refuses the user."""
    if apps.is_installed("django.contrib.auth"):
        from taproof.integrations.django_auth import start_session  # noqa: PLC0415 — see `_sign_out`.

        signed_in = SignedIn.from_session(content[SESSION_KEY])
        if signed_in is None or not start_session(request, signed_in):
            return False
    else:
        request.session.flush()
    request.session.update(content)
    return True


def _endpoint() -> SignInEndpoint:
    # Created for each request: this is cheap, and tests that override settings do not have to clear a cache.
    return SignInEndpoint(_settings(), _guard())


def _settings() -> TaproofSettings:
    try:
        return TaproofSettings.from_mapping({name: getattr(settings, name, None) for name in NAMES})
    except SettingsError as error:
        raise ImproperlyConfigured(str(error)) from None


def _guard() -> SingleUseGuard:
    guard: SingleUseGuard | None = getattr(settings, "TAPROOF_GUARD", None)
    if guard is not None:
        return guard
    name = getattr(settings, "TAPROOF_CACHE", "default")
    cache = caches[name]
    reason = None
    if isinstance(cache, DummyCache):
        reason = "remembers nothing"
    elif isinstance(cache, FileBasedCache):
        reason = "can add the same key twice"
    elif isinstance(cache, LocMemCache) and not settings.DEBUG:
        # DEBUG means `runserver`, which uses one process.
        reason = "is not shared between server processes"
    elif isinstance(cache, BaseDatabaseCache) and cache._max_entries < _ROOM:  # noqa: SLF001 — it has no public name.
        reason = f"holds too few entries (OPTIONS MAX_ENTRIES must be {_ROOM} or more)"
    if reason is None:
        return CacheGuard(cache)
    raise ImproperlyConfigured(
        f"The cache {name!r} {reason}, so it cannot prevent a proof from being used twice. Set TAPROOF_GUARD, such as"
        ' SqliteGuard(BASE_DIR / "proofs.db"), or set TAPROOF_CACHE to a cache in Redis, Memcached or the database.'
    )


def _asked(request: HttpRequest) -> EndpointRequest:
    body = Body()
    while body.add(request.read(CHUNK)):
        pass
    return EndpointRequest(
        content_type=request.headers.get("Content-Type"),
        fetch_site=request.headers.get("Sec-Fetch-Site"),
        origin=request.headers.get("Origin"),
        scheme=request.scheme,
        host=request.get_host(),
        body=body.kept(),
        next=request.GET.get("next"),
        held=request.session.get(SESSION_KEY),
    )


def _response(answer: EndpointResponse) -> HttpResponse:
    return JsonResponse(answer.content, status=answer.status, headers=HEADERS)

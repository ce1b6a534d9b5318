"""An application on Django: settings, views and URLs in one file; `SITE_…` in the environment chooses variants."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import django
from django.conf import settings
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import include, path

from taproof.sdk.guard import SqliteGuard

PLACE = Path(os.environ["SITE_GUARD"]).parent
DATABASE_CACHE = {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "site_cache"}
CACHES = {
    "database": DATABASE_CACHE | {"OPTIONS": {"MAX_ENTRIES": 100_000}},
    "database of 300": DATABASE_CACHE,
    "local": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    "files": {"BACKEND": "django.core.cache.backends.filebased.FileBasedCache", "LOCATION": str(PLACE / "cache")},
    "dummy": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"},
}
HAS_USERS = os.environ.get("SITE_USERS", "yes") == "yes"


class BrokenGuard:
    """A guard whose disk is full."""

    def take(self, *_: object) -> bool:
        raise OSError("no space left")


GUARDS: dict[str, Callable[[], Any]] = {
    "sqlite": lambda: SqliteGuard(os.environ["SITE_GUARD"]),
    "broken": BrokenGuard,
    "cache": lambda: None,
}

settings.configure(
    SECRET_KEY="not a secret: a test's",
    DEBUG=os.environ.get("SITE_DEBUG") == "yes",
    ALLOWED_HOSTS=["127.0.0.1", "shop.example.com"],
    SECURE_PROXY_SSL_HEADER=("HTTP_X_FORWARDED_PROTO", "https"),
    ROOT_URLCONF=__name__,
    INSTALLED_APPS=[
        "django.contrib.sessions",
        *(["django.contrib.auth", "django.contrib.contenttypes"] if HAS_USERS else []),
    ],
    MIDDLEWARE=[
        f"{__name__}.read_first",
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        *(["django.contrib.auth.middleware.AuthenticationMiddleware"] if HAS_USERS else []),
        "taproof.integrations.django.TaproofMiddleware",
    ],
    AUTHENTICATION_BACKENDS=[
        "taproof.integrations.django_auth.MessengerBackend",
        "django.contrib.auth.backends.ModelBackend",
    ],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": PLACE / "django.sqlite3",
            # Writers wait for each other instead of failing when two begin at once.
            "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 30},
        }
    },
    CACHES={"default": CACHES[os.environ.get("SITE_CACHE", "database")]},
    LOGIN_URL="/",
    TAPROOF_GUARD=GUARDS[os.environ.get("SITE_GUARD_KIND", "cache")](),
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "OPTIONS": {"context_processors": ["taproof.integrations.django.for_templates"]},
        }
    ],
    ADMINS=[("Admin", "admin@example.com")],
    EMAIL_BACKEND="django.core.mail.backends.filebased.EmailBackend",
    EMAIL_FILE_PATH=str(PLACE / "mail"),
    LOGGING={
        "version": 1,
        "disable_existing_loggers": False,
        "handlers": {"mail": {"class": "django.utils.log.AdminEmailHandler", "include_html": True}},
        "loggers": {"django.request": {"handlers": ["mail"], "level": "ERROR"}},
    },
    **{name: value for name, value in os.environ.items() if name.startswith("TAPROOF_")},
)
django.setup()


def read_first(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    def middleware(request: HttpRequest) -> HttpResponse:
        if "read-first" in request.GET:
            _ = request.body
        return get_response(request)

    return middleware


def home(_: HttpRequest) -> HttpResponse:
    return HttpResponse("home")


def button(request: HttpRequest) -> HttpResponse:
    # Imported where it is used, as all of Django that wants its settings first.
    from django.template import engines  # noqa: PLC0415

    return HttpResponse(engines["django"].from_string("{{ taproof|safe }}").render({}, request))


def plant(request: HttpRequest) -> HttpResponse:
    request.session["planted"] = "yes"
    return HttpResponse("planted")


def seen(request: HttpRequest) -> dict[str, Any]:
    user = request.user.get_username() if HAS_USERS else ""
    return {"somebody": bool(request.taproof_identity), "session": dict(request.session), "user": user}


def whoami(request: HttpRequest) -> HttpResponse:
    if not request.taproof_identity:
        return JsonResponse({"error": "Sign in first."}, status=401)
    return JsonResponse(seen(request))


def members(request: HttpRequest) -> HttpResponse:
    from django.contrib.auth.views import redirect_to_login  # noqa: PLC0415

    if not request.user.is_authenticated:
        return redirect_to_login(request.get_full_path())
    return HttpResponse(request.taproof_identity.messenger_name)


def anybody(request: HttpRequest) -> HttpResponse:
    return JsonResponse(seen(request))


urlpatterns = [
    path("", home),
    path("button", button),
    path("plant", plant),
    path("whoami", whoami),
    path("members", members),
    path("anybody", anybody),
    path("auth/", include("taproof.integrations.django")),
]

if __name__ == "__main__":
    # `python django_site.py migrate`, as manage.py does.
    call_command(*sys.argv[1:])
else:
    app = get_wsgi_application()

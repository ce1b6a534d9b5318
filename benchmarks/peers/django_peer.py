"""django-oauth-toolkit with its device flow, all of a Django project in one file; gunicorn serves `application`.

Run by the Python of its own virtual environment: `python django_peer.py` makes tables, user and client in the file that
PEER_DATABASE names. Nothing here is imported by the rest of the suite.
"""
# mypy: disable-error-code="import-not-found"

import os
from typing import Any, Final

import django
from django.conf import settings

CLIENT_ID: Final = "bench"

settings.configure(
    DEBUG=False,
    SECRET_KEY="a key for made-up sign-ins only, as long as Django likes it",  # noqa: S106
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    USE_TZ=True,
    # No middleware: the endpoints of the device flow need none, and each one would cost time.
    MIDDLEWARE=[],
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "oauth2_provider"],
    LOGGING_CONFIG=None,
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": os.environ["PEER_DATABASE"],
            "CONN_MAX_AGE": None,
            "OPTIONS": {
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL",
            },
        }
    },
    OAUTH2_PROVIDER={
        "OAUTH_DEVICE_VERIFICATION_URI": "http://127.0.0.1/o/device",
        "SCOPES": {"openid": "Who you are"},
        "DEFAULT_SCOPES": ["openid"],
    },
)
django.setup()

from django.contrib.auth import get_user_model  # noqa: E402 — Models can be imported once Django is set up.
from django.core.management import call_command  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.db import connection  # noqa: E402
from django.http import HttpRequest, JsonResponse  # noqa: E402
from django.urls import include, path  # noqa: E402
from oauth2_provider.models import get_application_model  # noqa: E402
from oauth2_provider.views import DeviceConfirmView, DeviceUserCodeView  # noqa: E402

_enter_code: Any = DeviceUserCodeView.as_view()
_confirm: Any = DeviceConfirmView.as_view()
_user: Any = None


def decide(request: HttpRequest) -> JsonResponse:
    """Enter the code and accept as the simulated user, through the toolkit's two views for that."""
    global _user  # noqa: PLW0603 — Read once a process, like a session that is kept in memory.
    if _user is None:
        _user = get_user_model().objects.get(username="simulated-user")
    request.user = _user
    entered = _enter_code(request)
    # Both redirect on success and return a page on failure.
    accepted = entered.status_code == 302 and _confirm(
        request, client_id=CLIENT_ID, user_code=request.POST["user_code"]
    )
    is_done = bool(accepted) and accepted.status_code == 302
    return JsonResponse({"approved": is_done}, status=200 if is_done else 409)


urlpatterns = [
    path("bench/decide", decide),
    path("o/", include("oauth2_provider.urls", namespace="oauth2_provider")),
]
application = get_wsgi_application()


def prepare() -> None:
    """Create the tables, the user who approves and the client that polls."""
    call_command("migrate", verbosity=0)
    get_user_model().objects.create_user("simulated-user")
    model = get_application_model()
    model.objects.create(
        client_id=CLIENT_ID,
        client_type=model.CLIENT_PUBLIC,
        authorization_grant_type=model.GRANT_DEVICE_CODE,
        name="Benchmark",
    )
    with connection.cursor() as cursor:
        # The toolkit looks up user codes without an index; an operator with a few thousand of them would add one.
        cursor.execute("CREATE INDEX device_by_user_code ON oauth2_provider_devicegrant (user_code)")


if __name__ == "__main__":
    prepare()

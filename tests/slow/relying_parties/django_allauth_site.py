"""A relying party: django-allauth with its OpenID Connect provider. Its database is in the working directory.

`SETTINGS` are more settings of Django.
"""

import json
import os
import secrets

import django
from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import include, path
from tests.slow.relying_parties.pages import page
from werkzeug.serving import make_server

SOCIALACCOUNT_PROVIDERS = {
    "openid_connect": {
        "APPS": [
            {
                "provider_id": "taproof",
                "name": "Messenger",
                "client_id": os.environ["OIDC_CLIENT_ID"],
                "secret": os.environ["OIDC_CLIENT_SECRET"],
                "settings": {"server_url": os.environ["OIDC_ISSUER"]},
            }
        ]
    }
}


def home(request: HttpRequest) -> HttpResponse:
    if not request.user.is_authenticated:
        return HttpResponse(page(None))
    account = apps.get_model("socialaccount", "SocialAccount").objects.get(user=request.user)
    claims = account.extra_data["userinfo"]
    return HttpResponse(page({"sub": account.uid, "name": claims["name"], "number": request.user.pk}))


def configure() -> None:
    """Set up Django as the package's documentation describes, with only the provider's address."""
    settings.configure(
        SECRET_KEY=secrets.token_hex(),
        ALLOWED_HOSTS=["127.0.0.1"],
        ROOT_URLCONF=__name__,
        INSTALLED_APPS=[
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.sessions",
            "django.contrib.messages",
            "allauth",
            "allauth.account",
            "allauth.socialaccount",
            "allauth.socialaccount.providers.openid_connect",
        ],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware",
            "allauth.account.middleware.AccountMiddleware",
        ],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {"context_processors": ["django.template.context_processors.request"]},
            }
        ],
        SESSION_COOKIE_NAME="allauth",
        LOGIN_REDIRECT_URL="/",
        ACCOUNT_LOGOUT_REDIRECT_URL="/",
        ACCOUNT_LOGOUT_ON_GET=True,
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "site.db"}},
        AUTHENTICATION_BACKENDS=[
            "django.contrib.auth.backends.ModelBackend",
            "allauth.account.auth_backends.AuthenticationBackend",
        ],
        LOGGING={
            "version": 1,
            "disable_existing_loggers": False,
            "handlers": {"log": {"class": "logging.StreamHandler"}},
            "root": {"handlers": ["log"]},
        },
        EMAIL_BACKEND="django.core.mail.backends.console.EmailBackend",
        SOCIALACCOUNT_LOGIN_ON_GET=True,
        SOCIALACCOUNT_PROVIDERS=SOCIALACCOUNT_PROVIDERS,
        **json.loads(os.environ.get("SETTINGS", "{}")),
    )


def sign_in(_request: HttpRequest) -> HttpResponse:
    return HttpResponse(status=303, headers={"Location": "/accounts/oidc/taproof/login/"})


def sign_out(_request: HttpRequest) -> HttpResponse:
    return HttpResponse(status=303, headers={"Location": "/accounts/logout/"})


urlpatterns = [path("", home), path("sign-in", sign_in), path("sign-out", sign_out)]

if __name__ == "__main__":
    configure()
    django.setup()
    urlpatterns.append(path("accounts/", include("allauth.urls")))  # It reads the settings.
    call_command("migrate", verbosity=0)
    server = make_server("127.0.0.1", int(os.environ["PORT"]), get_wsgi_application(), threaded=True)
    print(json.dumps({"port": server.server_port}), flush=True)
    server.serve_forever()

"""A relying party: mozilla-django-oidc with its own backend, which finds users by their e-mail address.

The client therefore needs an address for each user: `email` is `synthetic` at Taproof. Its database is in the working
directory.
"""

import json
import os
import secrets

import django
import jwt
import requests
from django.conf import settings
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import include, path
from tests.slow.relying_parties.pages import fingerprint, page
from werkzeug.serving import make_server


def username(_email: str, claims: dict[str, str]) -> str:
    return claims["sub"]


def home(request: HttpRequest) -> HttpResponse:
    if not request.user.is_authenticated:
        return HttpResponse(page(None))
    access_token, id_token = request.session["oidc_access_token"], request.session["oidc_id_token"]
    # The package has verified it.
    claims = jwt.decode(id_token, options={"verify_signature": False})
    tokens = {"access_token": fingerprint(access_token), "id_token": fingerprint(id_token)}
    user = {"sub": request.user.username, "name": claims["name"], "email": request.user.email, **tokens}
    return HttpResponse(page(user | {"number": request.user.pk}, sign_out="/oidc/logout/"))


def sign_in(_request: HttpRequest) -> HttpResponse:
    return HttpResponseRedirect("/oidc/authenticate/")


urlpatterns = [path("", home), path("sign-in", sign_in)]


def configure(issuer: str) -> None:
    """Set Django up with the endpoints that the provider publishes."""
    published = requests.get(f"{issuer}/.well-known/openid-configuration", timeout=30).json()
    settings.configure(
        SECRET_KEY=secrets.token_hex(),
        ALLOWED_HOSTS=["127.0.0.1"],
        ROOT_URLCONF=__name__,
        INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
        ],
        SESSION_COOKIE_NAME="django",
        LOGIN_REDIRECT_URL="/",
        LOGOUT_REDIRECT_URL="/",
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "site.db"}},
        AUTHENTICATION_BACKENDS=["mozilla_django_oidc.auth.OIDCAuthenticationBackend"],
        LOGGING={
            "version": 1,
            "disable_existing_loggers": False,
            "handlers": {"log": {"class": "logging.StreamHandler"}},
            "root": {"handlers": ["log"]},
        },
        OIDC_RP_CLIENT_ID=os.environ["OIDC_CLIENT_ID"],
        OIDC_RP_CLIENT_SECRET=os.environ["OIDC_CLIENT_SECRET"],
        OIDC_RP_SCOPES="openid profile email",
        OIDC_RP_SIGN_ALGO="RS256",
        OIDC_OP_AUTHORIZATION_ENDPOINT=published["authorization_endpoint"],
        OIDC_OP_TOKEN_ENDPOINT=published["token_endpoint"],
        OIDC_OP_USER_ENDPOINT=published["userinfo_endpoint"],
        OIDC_OP_JWKS_ENDPOINT=published["jwks_uri"],
        OIDC_USE_PKCE=True,
        OIDC_USERNAME_ALGO=f"{__name__}.username",
        OIDC_STORE_ACCESS_TOKEN=True,
        OIDC_STORE_ID_TOKEN=True,
    )


if __name__ == "__main__":
    configure(os.environ["OIDC_ISSUER"])
    django.setup()
    urlpatterns.append(path("oidc/", include("mozilla_django_oidc.urls")))  # It reads the settings.
    call_command("migrate", verbosity=0)
    server = make_server("127.0.0.1", int(os.environ["PORT"]), get_wsgi_application(), threaded=True)
    print(json.dumps({"port": server.server_port}), flush=True)
    server.serve_forever()

"""Django's settings; those for sign-in are at the end."""

import os
from pathlib import Path

from taproof import SqliteGuard

HERE = Path(__file__).parent
DATA = Path(os.environ.get("DATA_DIR", HERE.parent))

SECRET_KEY = os.environ["SESSION_SECRET"]
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
ROOT_URLCONF = "shop.urls"
WSGI_APPLICATION = "shop.wsgi.application"

INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "taproof.integrations.django.TaproofMiddleware",
    "shop.security_headers.SecurityHeadersMiddleware",
]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": DATA / "shop.db"}}
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [HERE / "templates"],
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "taproof.integrations.django.for_templates",
            ]
        },
    }
]
SESSION_COOKIE_NAME = "django_example"
SESSION_COOKIE_AGE = 8 * 60 * 60
SESSION_COOKIE_SECURE = os.environ.get("SECURE_COOKIES") == "1"  # Set it to 1 wherever the site uses HTTPS.
CSRF_COOKIE_SECURE = SESSION_COOKIE_SECURE
LOGIN_URL = "/"

AUTHENTICATION_BACKENDS = ["taproof.integrations.django_auth.MessengerBackend"]
TAPROOF_BASE_URL = os.environ.get("TAPROOF_BASE_URL")
TAPROOF_PROJECT_ID = os.environ.get("TAPROOF_PROJECT_ID")
TAPROOF_WEBHOOK_SECRET = os.environ.get("TAPROOF_WEBHOOK_SECRET")
TAPROOF_GUARD = SqliteGuard(DATA / "proofs.db")

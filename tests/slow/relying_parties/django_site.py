"""A relying party: the Django site of docs/how-to/oidc/mozilla-django-oidc.md, in a new project.

It is written to the working directory, which also has its database.
"""

import json
import os
import secrets
import sys
from pathlib import Path

import django
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from tests.docs.blocks import block_of
from werkzeug.serving import make_server

PAGE = "how-to/oidc/mozilla-django-oidc.md"
PARTS = {"settings": "OIDC_RP_CLIENT_ID", "messenger": "class MessengerBackend", "urls": "urlpatterns"}
SETTINGS = """
import os

SECRET_KEY = {secret!r}
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "shop.urls"
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]
TEMPLATES = [
    {{
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": ["templates"],
        "OPTIONS": {{"context_processors": ["django.contrib.auth.context_processors.auth"]}},
    }}
]
DATABASES = {{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": "site.db"}}}}
LOGGING = {{
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {{"log": {{"class": "logging.StreamHandler"}}}},
    "root": {{"handlers": ["log"]}},
}}
"""
URLS = """
from django.urls import include, path
from django.views.generic import TemplateView

urlpatterns = [path("", TemplateView.as_view(template_name="home.html"))]
"""
HOME = '<!doctype html><html lang="en"><title>Application</title>'
HOME += '{% if user.is_authenticated %}<p id="sub">{{ user.username }}</p><p id="name">{{ user.first_name }}</p>'
HOME += '<p id="email">{{ user.email }}</p><p id="number">{{ user.pk }}</p>{% endif %}'


def write_site() -> None:
    """Write the page's files, each after a new project's own content."""
    python = {name: block_of(PAGE, "python", part).text for name, part in PARTS.items()}
    files = {
        "shop/__init__.py": "",
        "shop/settings.py": SETTINGS.format(secret=secrets.token_hex()) + python["settings"],
        "shop/messenger.py": python["messenger"],
        "shop/urls.py": URLS + python["urls"],
        "templates/home.html": HOME + block_of(PAGE, "html").text,
    }
    for name, text in files.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text, "utf-8")


if __name__ == "__main__":
    write_site()
    sys.path.insert(0, str(Path.cwd()))
    os.environ["DJANGO_SETTINGS_MODULE"] = "shop.settings"
    django.setup()
    call_command("migrate", verbosity=0)
    server = make_server("127.0.0.1", int(os.environ["PORT"]), get_wsgi_application(), threaded=True)
    print(json.dumps({"port": server.server_port}), flush=True)
    server.serve_forever()

"""Features of Django only: `request.user`, accounts in its database, sessions on the server, mailed reports."""

import email
import email.policy
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.integrations.conftest import (
    OWN,
    SECRET,
    SETTINGS,
    SIGN_IN,
    SIGN_OUT,
    Site,
    StartSite,
    make_proof,
    start_site,
    start_without,
    whoami,
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = start_site("django", tmp_path_factory.mktemp("django"))
    yield site
    site.stop()


def ask(site: Site, statement: str, *values: Any) -> list[Any]:
    """Read or change the application's database."""
    with closing(sqlite3.connect(site.place / "django.sqlite3", timeout=30)) as connection, connection:
        return connection.execute(statement, values).fetchall()


def users(site: Site, messenger_id: str) -> list[Any]:
    return ask(site, "SELECT id, password FROM auth_user WHERE username = ?", f"messenger_{messenger_id}")


def test_the_first_sign_in_makes_a_user(site: Site, browser: httpx.Client) -> None:
    """A user without a password is created, and found again by the messenger account at the next sign-in."""
    for _ in range(2):
        site.sign_in(browser, make_proof("31"))
        assert browser.get("/whoami").json()["user"] == "messenger_31"
        browser.post(SIGN_OUT, content="{}", headers=OWN)
        assert browser.get("/anybody").json()["user"] == ""
    ((_, password),) = users(site, "31")
    assert password.startswith("!")


def test_a_session_ends_on_the_server(site: Site, browser: httpx.Client) -> None:
    """The planted session is gone after a sign-in, and a copied cookie does not work after a sign-out."""
    browser.get("/plant")
    planted = browser.cookies["sessionid"]
    site.sign_in(browser, make_proof("32"))
    signed_in = browser.cookies["sessionid"]
    browser.post(SIGN_OUT, content="{}", headers=OWN)
    for old in (planted, signed_in):
        with site.browser() as other:
            other.cookies["sessionid"] = old
            assert other.get("/anybody").json() == {"somebody": False, "session": {}, "user": ""}


def test_a_registered_name_is_not_taken_over(site: Site, browser: httpx.Client) -> None:
    """If somebody registered the name with a password before, the messenger account does not sign in to that user."""
    site.sign_in(browser, make_proof("33"))
    browser.post(SIGN_OUT, content="{}", headers=OWN)
    ask(site, "UPDATE auth_user SET password = 'md5$a$b' WHERE username = 'messenger_33'")
    answer = site.sign_in(browser, make_proof("33"))
    assert answer.status_code == 403
    assert answer.json()["error"].startswith("This account cannot sign in here.")
    assert whoami(browser) is None


def test_a_user_who_is_switched_off_stays_out(site: Site, browser: httpx.Client) -> None:
    """A user whose `is_active` is false loses the running session and cannot sign in."""
    site.sign_in(browser, make_proof("34"))
    ask(site, "UPDATE auth_user SET is_active = 0 WHERE username = 'messenger_34'")
    assert browser.get("/members").status_code == 302
    with site.browser() as other:
        assert site.sign_in(other, make_proof("34")).status_code == 403
        assert whoami(other) is None


def test_django_tokens_are_not_needed_and_still_asked_for_elsewhere(site: Site, browser: httpx.Client) -> None:
    """Only the endpoint, which has its own check, is exempt from Django's CSRF check."""
    assert site.sign_in(browser, make_proof("35")).status_code == 200
    assert browser.post("/plant").status_code == 403


def test_behind_a_proxy_the_public_address_counts(site: Site, browser: httpx.Client) -> None:
    """The origin is compared with the address that Django's settings derive from the proxy's headers."""
    public = {"Host": "shop.example.com", "X-Forwarded-Proto": "https"}
    for origin, status in (("https://shop.example.com", 200), ("http://shop.example.com", 403)):
        headers = public | {"Origin": origin}
        assert browser.post(SIGN_IN, json={"proof": make_proof("36")}, headers=headers).status_code == status


def test_without_django_contrib_auth(start: StartSite) -> None:
    """An application without a user model has the identity in its session, and gets a new session at each sign-in."""
    site = start("django", SITE_USERS="no")
    with site.browser() as browser:
        browser.get("/plant")
        before = browser.cookies["sessionid"]
        assert site.sign_in(browser, make_proof()).status_code == 200
        assert browser.cookies["sessionid"] != before
        assert whoami(browser)["taproof"]["messenger_id"] == "1001"
        assert "planted" not in whoami(browser)
        browser.post(SIGN_OUT, content="{}", headers=OWN)
        assert whoami(browser) is None


def test_a_guard_of_ones_own(start: StartSite) -> None:
    """TAPROOF_GUARD replaces the guard in the cache."""
    site = start("django", SITE_GUARD_KIND="sqlite", SITE_CACHE="dummy")
    proof = make_proof()
    with site.browser() as browser, site.browser() as other:
        assert [site.sign_in(each, proof).status_code for each in (browser, other)] == [200, 401]


def test_a_guard_that_fails_lets_nobody_in_and_mails_no_secret(start: StartSite) -> None:
    """If the guard cannot tell whether a proof was used, the proof is refused.

    The report to the admins contains no proof.
    """
    site = start("django", SITE_GUARD_KIND="broken")
    proof = make_proof()
    with site.browser() as browser:
        assert site.sign_in(browser, proof).status_code == 500
        assert whoami(browser) is None
    reports = [
        part.get_content()
        for path in (site.place / "mail").iterdir()
        for part in email.message_from_bytes(path.read_bytes(), policy=email.policy.default).walk()
        if part.get_content_type() == "text/html"
    ]
    (told,) = reports
    assert "no space left" in told
    assert "verify_proof" in told
    assert proof.rpartition(".")[2] not in told
    assert SECRET not in told


def test_a_password_does_not_sign_in_through_the_messenger_backend(site: Site) -> None:
    """The backend accepts an identity only, and the password backend works beside it, whichever comes first."""
    program = """
from asgiref.sync import async_to_sync
from django.contrib.auth import aauthenticate, authenticate
from django.contrib.auth.models import User
from taproof.integrations.endpoint import SignedIn
User.objects.create_user("grace", password="hopper")
identity = SignedIn(messenger_id="37", messenger_name="G", messenger_username="", signed_in_at=1)
for call in (authenticate, async_to_sync(aauthenticate)):
    print(call(None, username="grace", password="hopper").backend.rpartition(".")[2], end=" ")
    print(call(None, username="grace", password="wrong"), end=" ")
    print(call(None, taproof_identity=identity).backend.rpartition(".")[2], end=" ")
    print(call(None, taproof_identity={"messenger_id": "37"}))
"""
    done = start_without("django", site.place, program, **SETTINGS)
    assert done.stdout.splitlines() == ["ModelBackend None MessengerBackend None"] * 2, done.stderr


ACCOUNT = """
from django.contrib.auth.models import AbstractUser
from django.db import models
class Account(AbstractUser):
    messenger_id = models.CharField(max_length=32, null=True, unique=IS_UNIQUE)
"""
WITH_ACCOUNT = """
import django
from django.conf import settings
settings.configure(
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "accounts"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    AUTH_USER_MODEL="accounts.Account",
    AUTHENTICATION_BACKENDS=["taproof.integrations.django_auth.MessengerBackend"],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()
from accounts.models import Account
from django.contrib.auth import authenticate
from django.core.management import call_command
from taproof.integrations.endpoint import SignedIn
call_command("migrate", run_syncdb=True, verbosity=0)
def sign_in(messenger_id):
    identity = SignedIn(messenger_id=messenger_id, messenger_name="G", messenger_username="", signed_in_at=1)
    return authenticate(None, taproof_identity=identity)
user = sign_in("38")
user.set_password("beside it")
user.save()
Account.objects.create_user("messenger_39", password="squatter")
print(user.messenger_id, user.username, sign_in("38") == user, sign_in("39"))
"""


@pytest.mark.parametrize("is_unique", [True, False])
def test_a_user_model_with_a_messenger_id(tmp_path: Path, *, is_unique: bool) -> None:
    """A user is found by the unique field, with or without a password; a field that is not unique is refused."""
    (tmp_path / "accounts").mkdir()
    (tmp_path / "accounts" / "__init__.py").touch()
    (tmp_path / "accounts" / "models.py").write_text(ACCOUNT.replace("IS_UNIQUE", str(is_unique)), "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", WITH_ACCOUNT], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    if is_unique:
        assert done.stdout.strip() == "38 messenger_38 True None", done.stderr
    else:
        assert "messenger_id must be unique" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("cache", "debug", "says"),
    [
        ("local", "no", "is not shared between server processes"),
        ("local", "yes", None),
        ("dummy", "yes", "remembers nothing"),
        ("files", "yes", "can add the same key twice"),
        ("database of 300", "yes", "MAX_ENTRIES"),
        ("database", "no", None),
    ],
)
def test_django_refuses_a_cache_that_cannot_guard(cache: str, debug: str, says: str | None, tmp_path: Path) -> None:
    """An application whose cache could accept a proof twice does not start.

    Django's default cache belongs to one process, as `runserver` does. Its cache in the database drops entries that are
    still needed if there are more than 300.
    """
    done = start_without("django", tmp_path, SITE_CACHE=cache, SITE_DEBUG=debug, **SETTINGS)
    if says is None:
        assert done.returncode == 0, done.stderr
    else:
        assert says in done.stderr.splitlines()[-1]
        assert "TAPROOF_GUARD" in done.stderr.splitlines()[-1]

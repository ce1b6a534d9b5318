"""The accepted and refused values of settings, and the text of a refusal."""
# ruff: noqa: S104 — addresses are read here, nothing listens on them.

import base64
from pathlib import Path
from typing import Any

import pytest

from taproof.cli.command import load
from taproof.config.database_url import database_file, shown_database
from taproof.config.options import called, variable
from taproof.config.settings import OPTIONS, InvalidSettings, Settings, load_settings, unknown_variables
from taproof.core.clock import SECOND
from taproof.core.rate_limit import Rate

KEY = base64.b64encode(bytes(range(32))).decode()
TOKEN = "123456789:AAabcdefghijklmnopqrstuvwxyz0123456"
CANARY = "canary-5c1b"
REFUSED: dict[str, list[Any]] = {
    "sandbox": ["maybe", CANARY],
    "sandbox_allow_remote": [CANARY],
    "host": [CANARY, "example.com", "127.0.0.1:80", "1.2.3"],
    "port": ["0", "65536", "-1", "8080.5", CANARY],
    "base_url": [
        CANARY,
        "ftp://example.com",
        "http://example.com",
        "https://",
        "https://example.com/canary-5c1b",
        "https://example.com?x",
        "https://ada:canary-5c1b@example.com",
        "https://example.com:99999",
        "https://exa mple.com",
    ],
    "tls_cert": ["/nowhere/canary-5c1b", "."],
    "tls_key": ["/nowhere/canary-5c1b", "."],
    "trusted_proxy": ["10.0.0.1/8", CANARY, "10.0.0.0/8;10.1.0.0/16", "10.0.0.0/40"],
    "keep_alive": ["0", "3601", "-1", "1.5", "10s", CANARY],
    "bot_token": [CANARY, "123456789", "123456789:", ":AAcanary", "12 34:AAcanary", "123456789:AA\ncanary"],
    "bot_updates": [CANARY, "push"],
    "bot_api_url": [CANARY, "ftp://example.com", "https://ada:canary-5c1b@example.com"],
    "telegram_environment": [CANARY, "testing"],
    "messenger_link_base": ["http://t.me/bot", "https://t.me/bot?canary-5c1b", CANARY],
    "geoip_file": [CANARY, "/nowhere/canary-5c1b.mmdb", "/"],
    "console_name": ["x" * 41, "a\nb", "a\u202eb", "{canary-5c1b}", "\u3164"],
    "console_logo": [CANARY, "/nowhere/canary-5c1b.png", "/", __file__],
    "webhook_allow": [CANARY, "private;loopback", "10.0.0.1/8", "private,lan", "fd00::/8%canary-5c1b", "fe80::1/200"],
    "webhook_ports": [CANARY, ",", "0", "65536", "443;8443", "443,https", "-1", "4.5"],
    "database_url": [
        CANARY,
        "sqlite://",
        "sqlite:///",
        "sqlite:///data/",
        "mysql://canary-5c1b",
        "taproof.db",
        "postgresql://",
        "postgresql://canary-5c1b@host",
        "postgresql://canary-5c1b@one,/db",
        "postgresql://canary-5c1b@one,:5432,two/db",
        "postgresql://canary-5c1b@host/",
        "postgresql:///canary-5c1b",
        "postgresql://user:canary-5c1b@host:port/db",
        "postgresql://user:canary 5c1b@host/db",
        "postgresql://user:canary@5c1b@host/db",
        "postgresql://user:canary/5c1b@host/db",
        "postgresql://user:canary%5c1b%@host/db",
        "postgresql://user:12/pass?canary=5c1b@host/db",
        "postgresql://user:x@host/db?canary-5c1b=1",
        "postgresql+asyncpg://user:canary@host/db",
        "host=db dbname='canary",
        "service=canary-5c1b",
        "sqlite:///~/canary.db",
        "sqlite:///:memory:",
        "sqlite:///canary.db?mode=ro",
        "file:canary.db",
    ],
    "generate_limit_address": [CANARY, "60", "60/", "/minute", "0/minute", "1000001/second", "60/day", "-1/minute"],
    "generate_limit_project": [CANARY, "1.5/second", "60/minutes", "6 0/minute", "٦/minute", "0", "none"],
    "pgbouncer": ["perhaps", CANARY],
    "master_key": [CANARY, base64.b64encode(b"canary").decode(), KEY[:-4], KEY + "AAAA", f"{KEY},canary", f"{KEY},"],
    "developer_limit": [CANARY, "1.5/second", "60/minutes", "0", "none"],
    "developer_write_limit": [CANARY, "1.5/second", "60/minutes", "0", "none"],
    "session_retention_days": ["0", "3651", "1.5", CANARY],
    "audit_days": ["0", "3651", "1.5", CANARY],
    "plan_projects": [
        CANARY,
        "3",
        "free",
        "free=",
        "=3",
        "gold=3",
        "free=-1",
        "free=1.5",
        "free=3;pro=4",
        "free=3,FREE=4",
    ],
    "plan_sign_ins": [CANARY, "free=many", "free=٣", "free=1000000001", "free=3=4", "unlimited"],
    "role": [CANARY, "web"],
    "workers": ["0", "65", "two", CANARY],
    "log_level": [CANARY, "trace"],
    "log_format": [CANARY, "xml"],
    "traces": [CANARY, "on", "true"],
}


def test_a_refusal_names_option_and_variable_and_never_the_value(
    subtests: pytest.Subtests,
) -> None:
    """One sentence per invalid setting names the option, its variable and the rule.

    It does not show the value, which may be secret.
    """
    for name, value in [(name, value) for name, values in REFUSED.items() for value in values]:
        for source in ["option", "environment"]:
            with subtests.test(source=source, name=name, value=value), pytest.MonkeyPatch.context() as monkeypatch:
                given = {name: value} if source == "option" else {}
                if source == "environment":
                    monkeypatch.setenv(variable(name), value)
                with pytest.raises(InvalidSettings) as caught:
                    load_settings(given)
                (sentence,) = caught.value.sentences
                # The sentence about an address names what is wrong with it: tests/storage/postgres/test_address.py.
                must = OPTIONS[name].must if name != "database_url" else sentence.partition(") ")[2].rstrip(".")
                assert sentence == f"{OPTIONS[name].flag} ({variable(name)}) {must}."
                assert "canary" not in str(caught.value)
                assert KEY[:10] not in str(caught.value)


def test_every_setting_is_refused_in_some_form() -> None:
    """Each setting refuses some value."""
    assert REFUSED.keys() == Settings.model_fields.keys()


def test_all_problems_are_told_at_once() -> None:
    """All invalid settings are reported together."""
    with pytest.raises(InvalidSettings) as caught:
        load_settings({"port": "x", "bot_token": "x", "host": "127.0.0.1", "log_level": "x"})
    assert [sentence.split(" ")[0] for sentence in caught.value.sentences] == ["--port", "--bot-token", "--log-level"]


def test_what_kubernetes_sets_is_not_a_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a pod beside a Service named taproof, Kubernetes sets TAPROOF_PORT to an address; it is ignored."""
    monkeypatch.setenv("TAPROOF_PORT", "tcp://10.0.0.1:80")
    assert load_settings({}).port == 8080


def test_options_win_over_the_environment_and_that_over_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Options override the environment, which overrides defaults; an empty variable counts as unset."""
    monkeypatch.setenv("TAPROOF_PORT", "9001")
    monkeypatch.setenv("TAPROOF_HOST", "")
    assert load_settings({}).port == 9001
    assert load_settings({"port": "9002"}).port == 9002
    assert load_settings({}).host == "127.0.0.1"


def test_defaults_follow_from_each_other(tmp_path: Path) -> None:
    """The base URL follows host, port and TLS on loopback; the sandbox has its own default database."""
    pem = tmp_path / "x.pem"
    pem.write_text("x")
    assert load_settings({}).base_url == "http://127.0.0.1:8080"
    assert load_settings({"host": "::1", "port": 9000}).base_url == "http://[::1]:9000"
    assert load_settings({"host": "localhost", "tls_cert": pem, "tls_key": pem}).base_url == "https://localhost:8080"
    assert load_settings({}).database_url == "sqlite:///taproof.db"
    assert load_settings({"sandbox": True}).database_url == "sqlite:///taproof-sandbox.db"
    assert load_settings({"sandbox": True, "database_url": "sqlite:///own.db"}).database_url == "sqlite:///own.db"


def test_idle_connections_last_longer_behind_a_proxy() -> None:
    """Idle connections close after 10 seconds, and behind a proxy after more than the proxy's two minutes (Caddy)."""
    assert load_settings({}).keep_alive == 10
    assert load_settings({"trusted_proxy": "127.0.0.1/32"}).keep_alive == 150
    assert load_settings({"trusted_proxy": "127.0.0.1/32", "keep_alive": "20"}).keep_alive == 20


def test_values_are_read_as_people_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Surrounding spaces, a trailing slash, capital letters and comma-separated lists are accepted."""
    for name, value in {
        "TAPROOF_BASE_URL": " https://signin.example.com/ ",
        "TAPROOF_TRUSTED_PROXY": "10.0.0.0/8, fd00::/8,127.0.0.1",
        "TAPROOF_PLAN_PROJECTS": " Free=3 , pro = 20,",
        "TAPROOF_WEBHOOK_ALLOW": "Private, 127.0.0.2,fd00:1::/32,",
        "TAPROOF_WEBHOOK_PORTS": " 443, 9443",
        "TAPROOF_BOT_TOKEN": f"{TOKEN}\n",
        "TAPROOF_BOT_UPDATES": "Webhook",
        "TAPROOF_LOG_LEVEL": "WARNING",
        "TAPROOF_SANDBOX": "yes",
        "TAPROOF_SANDBOX_ALLOW_REMOTE": "1",
        "TAPROOF_GENERATE_LIMIT_ADDRESS": " 10 / Second",
        "TAPROOF_GENERATE_LIMIT_PROJECT": "OFF",
        "TAPROOF_MASTER_KEY": f"{KEY}\n",
    }.items():
        monkeypatch.setenv(name, value)
    settings = load_settings({})
    assert settings.base_url == "https://signin.example.com"
    assert [str(network) for network in settings.trusted_proxy] == ["10.0.0.0/8", "fd00::/8", "127.0.0.1/32"]
    assert settings.webhook_allow == ("Private", "127.0.0.2", "fd00:1::/32")
    assert settings.webhook_ports == {443, 9443}
    assert settings.bot_token is not None
    assert settings.bot_token.get_secret_value() == TOKEN
    assert settings.bot_updates == "webhook"
    assert settings.log_level == "warning"
    assert settings.sandbox
    assert settings.sandbox_allow_remote
    assert settings.generate_limit_address == Rate(10, SECOND)
    assert settings.generate_limit_project is None
    assert settings.plan_projects == {"free": 3, "pro": 20}
    assert settings.plan_sign_ins == {}


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"tls_cert": __file__}, ["tls_cert", "tls_key"]),
        ({"tls_key": __file__}, ["tls_cert", "tls_key"]),
        ({"host": "0.0.0.0"}, ["base_url", "host"]),
        ({"sandbox": True, "host": "0.0.0.0"}, ["host", "sandbox_allow_remote"]),
        ({"sandbox": True, "host": "::"}, ["host", "sandbox_allow_remote"]),
        ({"sandbox": True, "base_url": "https://try.example.com"}, ["base_url", "sandbox_allow_remote"]),
        ({"sandbox": True, "sandbox_allow_remote": True, "host": "0.0.0.0"}, ["base_url", "host"]),
        ({"bot_updates": "webhook"}, ["bot_updates", "base_url"]),
        ({"sandbox": True, "workers": 2}, ["sandbox", "workers"]),
        ({"sandbox": True, "role": "api"}, ["sandbox", "role"]),
        ({"pgbouncer": True}, ["pgbouncer", "database_url"]),
        ({"role": "bot", "bot_updates": "webhook", "host": "0.0.0.0"}, ["base_url", "host"]),
    ],
)
def test_settings_that_do_not_go_together_are_refused(given: dict[str, Any], names: list[str]) -> None:
    """Half of TLS, a partial or public sandbox, a wrong own address and a webhook without https are refused."""
    with pytest.raises(InvalidSettings) as caught:
        load_settings(given)
    (sentence,) = caught.value.sentences
    assert all(called(name) in sentence for name in names)


def test_which_addresses_webhooks_may_be_posted_to() -> None:
    """Public addresses and those that the operator allows; in the sandbox, also this machine."""
    assert load_settings({}).address_rules.problem("127.0.0.1") == "loopback"
    assert load_settings({"sandbox": True}).address_rules.problem("127.0.0.1") is None
    assert load_settings({"sandbox": True}).address_rules.problem("10.0.0.1") == "private"
    settings = load_settings({"sandbox": True, "webhook_allow": "private,192.0.2.0/24"})
    assert [settings.address_rules.problem(each) for each in ("10.0.0.1", "192.0.2.1", "::1")] == [None] * 3
    assert load_settings({}).webhook_ports == {443, 8443}
    assert OPTIONS["webhook_ports"].default == "443,8443"


def test_lists_are_given_by_repeating_an_option_or_with_commas() -> None:
    """On the command line, a list can use repetition, commas or both."""
    settings = load(
        {
            "webhook_allow": ["private", "127.0.0.2, cgnat"],
            "webhook_ports": ["443", "9443,9444"],
            "trusted_proxy": ["10.0.0.0/8,", "fd00::/8"],
        }
    )
    assert settings.webhook_allow == ("private", "127.0.0.2", "cgnat")
    assert settings.webhook_ports == {443, 9443, 9444}
    assert [str(network) for network in settings.trusted_proxy] == ["10.0.0.0/8", "fd00::/8"]


def test_secrets_do_not_show_in_a_printed_settings_object() -> None:
    """Printing or logging the settings shows neither the bot token, the master key nor the database's password."""
    given = {"bot_token": TOKEN, "master_key": KEY, "database_url": f"postgresql://taproof:{CANARY}@db/taproof"}
    text = repr(load_settings(given))
    assert TOKEN not in text
    assert KEY not in text
    assert CANARY not in text


def test_misspelt_variables_are_told_with_the_nearest_name() -> None:
    """A variable that nothing reads is probably a typing error; its value is not shown."""
    sentences = unknown_variables(["TAPROOF_BOT_TOKNE", "TAPROOF_PORT", "taproof_host", "TAPROOF_XYZZY", "PATH"])
    assert len(sentences) == 2
    assert "TAPROOF_BOT_TOKNE" in sentences[0]
    assert "TAPROOF_BOT_TOKEN?" in sentences[0]
    assert "TAPROOF_XYZZY" in sentences[1]


def test_an_application_s_variables_are_no_typing_errors() -> None:
    """Variables of a Taproof application in the same environment are recognized as such.

    Other unknown names are not.
    """
    (sentence,) = unknown_variables(["TAPROOF_WEBHOOK_SECRET", "TAPROOF_BASE_URL"])
    assert sentence.startswith("TAPROOF_WEBHOOK_SECRET is not a Taproof setting")
    assert "application" in sentence
    assert "Did you mean" not in sentence


def test_a_database_url_names_a_file() -> None:
    """Three slashes give a path relative to the working directory, four an absolute path."""
    assert database_file("sqlite:///data/taproof.db") == Path("data/taproof.db")
    assert database_file("sqlite:////var/lib/taproof.db") == Path("/var/lib/taproof.db")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://taproof:canary@db.internal:5432/taproof", "postgresql://taproof@db.internal/taproof"),
        ("postgres://taproof:can%40ry@[::1]:5432/taproof", "postgresql://taproof@[::1]/taproof"),
        ("postgresql://taproof@db/taproof?password=canary&sslmode=require", "postgresql://taproof@db/taproof"),
        ("postgresql://taproof:canary@one:5432,two:5433/taproof", "postgresql://taproof@one,two:5433/taproof"),
        ("postgresql://:canary@db/taproof", "postgresql://db/taproof"),
        ("postgresql://a:canary#?@db/taproof", "postgresql://a@db/taproof"),
        ("host=/run/db port=1 dbname=taproof user=a password='can ary'", "postgresql://a@/run/db/taproof"),
        ("postgresql://db/taproof", "postgresql://db/taproof"),
        ("postgresql:///taproof?host=/var/run/postgresql&password=canary", "postgresql:///var/run/postgresql/taproof"),
    ],
)
def test_a_database_is_shown_without_its_password(url: str, shown: str) -> None:
    """A password is hidden wherever a PostgreSQL URL can contain it, and all these URLs are accepted."""
    assert shown_database(load_settings({"database_url": url}).database_url) == shown


def test_a_node_that_serves_no_api_needs_no_address_of_its_own() -> None:
    """A worker listens beyond this machine for monitoring, and needs no base URL."""
    assert load_settings({"role": "worker", "host": "0.0.0.0"}).base_url == ""
    assert load_settings({"role": "bot", "host": "0.0.0.0"}).base_url == ""


@pytest.mark.parametrize(
    ("given", "needed"),
    [
        ({}, True),
        ({"role": "bot"}, True),
        ({"role": "worker"}, False),
        ({"role": "api"}, True),
        ({"role": "api", "messenger_link_base": "https://t.me/b"}, False),
        ({"messenger_link_base": "https://t.me/b"}, True),
        (
            {
                "role": "api",
                "messenger_link_base": "https://t.me/b",
                "bot_updates": "webhook",
                "base_url": "https://signin.example.com",
            },
            True,
        ),
    ],
)
def test_who_needs_the_bot(given: dict[str, Any], *, needed: bool) -> None:
    """Only nodes that call the Bot API need a bot token."""
    assert load_settings(given).needs_bot is needed


@pytest.mark.parametrize(
    ("given", "local_only"),
    [
        ({}, True),
        ({"base_url": "http://localhost:8080"}, True),
        ({"base_url": "https://signin.example.com"}, False),
        ({"trusted_proxy": "127.0.0.1/32"}, False),
        ({"base_url": "http://localhost:8080", "trusted_proxy": "10.0.0.0/8"}, False),
    ],
)
def test_only_a_service_without_strangers_is_for_this_machine_alone(given: dict[str, str], *, local_only: bool) -> None:
    """If the address is public or a proxy is set, a call from loopback may come from a stranger."""
    assert load_settings({"sandbox": True, "sandbox_allow_remote": True, **given}).local_only is local_only

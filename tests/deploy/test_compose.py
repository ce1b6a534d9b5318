"""The compose file and the Caddyfile fit each other, the image and the settings.

No container engine is available; the rules are those of the Compose Specification and of Caddy's documentation.
"""

import re
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy.dockerfile import read_dockerfile

from taproof.cli.doctor.address import check_address
from taproof.config.settings import load_settings
from taproof.core.encryption import new_master_key
from taproof.runtime.supervisor import STOP_SECONDS

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "deploy/compose"
TEXT = (COMPOSE / "compose.yaml").read_text(encoding="utf-8")
REFERENCE = re.compile(r"\$\{(\w+):\?[^}]+\}")
"""Matches a variable that must be set: `${NAME:?what to do}`."""
GIVEN = {
    "DOMAIN": "signin.example.com",
    "TAPROOF_BOT_TOKEN": "123456789:AAabcdefghijklmnopqrstuvwxyz0123456",
    "TAPROOF_MASTER_KEY": new_master_key(bytes),
    "POSTGRES_PASSWORD": "ab" * 24,
}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """Return the file as compose reads it with a filled-in .env."""
    found: dict[str, Any] = yaml.safe_load(REFERENCE.sub(lambda name: GIVEN[name[1]], TEXT))
    return found


def test_the_example_of_env_names_what_is_asked_for(compose: dict[str, Any]) -> None:
    """.env.example has exactly the variables of the compose file, and its secrets are empty."""
    example = (COMPOSE / ".env.example").read_text(encoding="utf-8")
    variables = dict(re.findall(r"^(\w+)=(.*)$", example, re.MULTILINE))
    assert variables.keys() == set(REFERENCE.findall(TEXT)) == GIVEN.keys()
    assert {name for name, value in variables.items() if value} == {"DOMAIN"}
    assert "$" not in yaml.safe_dump(compose), "each must be set, or compose says which is missing"


def test_every_container_has_given_up_what_it_can(compose: dict[str, Any]) -> None:
    """Every container is read-only and has no capability except the one that Caddy's binary needs."""
    for name, service in compose["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service.get("cap_add", []) == (["NET_BIND_SERVICE"] if name == "caddy" else [])
        assert not service.keys() & {"privileged", "pid", "network_mode", "devices", "userns_mode"}
        assert service["restart"] == "unless-stopped"


def test_each_starts_when_what_it_needs_is_healthy(compose: dict[str, Any]) -> None:
    """Every service that another one waits for has a health check, its own or that of the image."""
    stages = read_dockerfile(ROOT / "deploy/docker/Dockerfile")[1]
    waited_for = set()
    for service in compose["services"].values():
        for other, how in service.get("depends_on", {}).items():
            assert how == {"condition": "service_healthy"}
            waited_for.add(other)
    assert waited_for == {"taproof", "postgres"}
    checked = {name for name, service in compose["services"].items() if "healthcheck" in service}
    assert checked | ({"taproof"} if stages[-1].one("HEALTHCHECK") else set()) == compose["services"].keys()


def test_every_volume_network_and_file_is_there(compose: dict[str, Any]) -> None:
    """Every volume and network is declared, and every mounted file of the repository exists."""
    used = set()
    for service in compose["services"].values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (COMPOSE / source).is_file(), source
                assert volume.endswith(":ro")
            else:
                used.add(source)
        assert set(service["networks"]) <= compose["networks"].keys()
    assert used == compose["volumes"].keys()
    build = compose["services"]["taproof"]["build"]
    context = (COMPOSE / build["context"]).resolve()
    assert context == ROOT
    assert (context / build["dockerfile"]).is_file()


@pytest.mark.parametrize("network", ["172.30.77.", "10.99.77."])
def test_caddy_alone_is_trusted_and_reached_from_outside(compose: dict[str, Any], network: str) -> None:
    """The trusted proxy is Caddy's address, which no other container gets; the database cannot reach the internet.

    Also after the replacement of docs/how-to/deploy-docker.md.
    """
    assert "s/172\\.30\\.77\\./10.99.77./" in (ROOT / "docs/how-to/deploy-docker.md").read_text("utf-8")
    compose = yaml.safe_load(yaml.safe_dump(compose).replace("172.30.77.", network))
    services = compose["services"]
    (edge,) = compose["networks"]["edge"]["ipam"]["config"]
    caddy = ip_address(services["caddy"]["networks"]["edge"]["ipv4_address"])
    assert services["taproof"]["environment"]["TAPROOF_TRUSTED_PROXY"] == f"{caddy}/32"
    assert caddy in ip_network(edge["subnet"])
    assert caddy not in ip_network(edge["ip_range"])
    assert edge["gateway"] != str(caddy)
    assert {name for name, service in services.items() if "ports" in service} == {"caddy"}
    assert compose["networks"]["store"] == {"internal": True}
    assert services["postgres"]["networks"] == ["store"]
    assert "store" not in services["caddy"]["networks"]


def test_the_service_can_be_run_with_these_settings(compose: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """With the image's settings and these, Taproof starts and its address can be used."""
    taproof = compose["services"]["taproof"]
    image = dict(
        re.findall(r"(TAPROOF_\w+)=(\S+)", read_dockerfile(ROOT / "deploy/docker/Dockerfile")[1][-1].one("ENV"))
    )
    for name, value in (image | taproof["environment"]).items():
        monkeypatch.setenv(name, value)
    settings = load_settings({})
    assert settings.master_key is not None
    assert settings.bot_token is not None
    assert check_address(settings).status == "ok"
    assert "@postgres:5432/taproof" in settings.database_url
    assert compose["services"]["postgres"]["environment"]["POSTGRES_USER"] == "taproof"
    assert int(taproof["stop_grace_period"].removesuffix("s")) > STOP_SECONDS


def test_the_caddyfile_passes_on_what_is_public(compose: dict[str, Any]) -> None:
    """The Caddyfile has one site, for the domain in .env, that proxies to the image's port; /metrics gets 404."""
    text = (COMPOSE / "Caddyfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
    assert [line for line in lines if not line.startswith("\t")] == ["{", "}", "{$DOMAIN} {", "}"]
    assert [line.strip() for line in lines if line.startswith("\t")] == [
        "admin off",
        "respond /metrics 404",
        "reverse_proxy taproof:8080",
    ]
    assert compose["services"]["caddy"]["environment"].keys() == {"DOMAIN"}
    assert read_dockerfile(ROOT / "deploy/docker/Dockerfile")[1][-1].one("EXPOSE") == "8080"

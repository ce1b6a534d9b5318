"""The peers compared with Taproof: storage, request format and versions of each."""

import json
import platform
import re
import subprocess
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Final, Literal

from benchmarks.machine import BUILD
from benchmarks.measuring import FIGURES, FigureName

HERE: Final = Path(__file__).resolve().parent
MODULES: Final = HERE / "node_modules"
PYTHON_HOME: Final = BUILD / "peers-venv"

Program = Literal["node", "gunicorn", "nginx"]
Database = Literal["sqlite", "redis", "memory", "none"]
_STORAGES: Final[dict[Database, str]] = {
    "sqlite": "SQLite, synchronous=FULL",
    "redis": "Redis, appendfsync always",
    "memory": "memory",
    "none": "nothing",
}


@dataclass(frozen=True, slots=True)
class Dialect:
    """The peer's form of the device flow (RFC 8628): the paths of its endpoints and the format of their bodies."""

    body: Literal["form", "json"]
    create_path: str
    token_path: str
    result_field: str
    """The field that an answer to a redeem must have to count as a result."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One program in one configuration. `processes` is how many of it run on one core when it is measured."""

    name: str
    program: Program
    script: str
    database: Database
    dialect: Dialect
    parts: tuple[str, ...]
    """Packages whose versions belong to the figures."""
    processes: int = 1
    figures: tuple[FigureName, ...] = FIGURES

    @property
    def storage(self) -> str:
        """Return the storage in words."""
        return _STORAGES[self.database]

    @property
    def is_durable(self) -> bool:
        """Return whether an answered change is on disk."""
        return self.database in {"sqlite", "redis"}

    @property
    def most_processes(self) -> int:
        """Return how many processes can share the sign-ins: memory is not shared."""
        return 2 if self.is_durable else 1


_OIDC: Final = Dialect("form", "/device/auth", "/token", "id_token")
_BETTER_AUTH: Final = Dialect("json", "/api/auth/device/code", "/api/auth/device/token", "access_token")
_DJANGO: Final = Dialect("form", "/o/device-authorization/", "/o/token/", "access_token")
_AUTHLIB: Final = Dialect("form", "/device/code", "/token", "access_token")
_DJANGO_PARTS: Final = ("django-oauth-toolkit", "Django", "oauthlib", "gunicorn")
_OIDC_SCRIPT: Final = "oidc_provider.mjs"

PEERS: Final = (
    Peer("oidc-provider, in memory", "node", _OIDC_SCRIPT, "memory", _OIDC, ("oidc-provider",)),
    Peer("oidc-provider on SQLite", "node", _OIDC_SCRIPT, "sqlite", _OIDC, ("oidc-provider", "better-sqlite3")),
    Peer("oidc-provider on Redis", "node", _OIDC_SCRIPT, "redis", _OIDC, ("oidc-provider", "ioredis")),
    Peer("better-auth", "node", "better_auth.mjs", "sqlite", _BETTER_AUTH, ("better-auth", "better-sqlite3")),
    Peer("django-oauth-toolkit", "gunicorn", "django_peer", "sqlite", _DJANGO, _DJANGO_PARTS),
    Peer("django-oauth-toolkit, 2 workers", "gunicorn", "django_peer", "sqlite", _DJANGO, _DJANGO_PARTS, processes=2),
    Peer("Authlib", "gunicorn", "authlib_peer", "sqlite", _AUTHLIB, ("Authlib", "Flask", "gunicorn")),
)

FLOOR: Final = Peer(
    "nginx, a constant answer", "nginx", "", "none", Dialect("json", "", "", ""), parts=(), figures=("poll",)
)


def node() -> str:
    """Return the Node.js that npm installed with the peers, or the machine's own if none fits it."""
    return next((str(each) for each in MODULES.glob("node-linux-*/bin/node")), "node")


def _told_version(program: str, option: str) -> str:
    """Return the first version number that a program prints."""
    told = subprocess.run([program, option], capture_output=True, text=True, check=True)
    found = re.search(r"\d+(\.\d+)+", told.stdout + told.stderr)
    return found[0] if found else "unknown"


def versions(peer: Peer) -> dict[str, str]:
    """Return the versions that a peer's figures depend on, by name. The peer must be installed."""
    if peer.program == "nginx":
        return {"nginx": _told_version("nginx", "-v")}
    if peer.program == "node":
        packages = {part: json.loads((MODULES / part / "package.json").read_text("utf-8")) for part in peer.parts}
        found = {"Node.js": _told_version(node(), "--version")}
        found |= {part: each["version"] for part, each in packages.items()}
        return found | ({"Redis": _told_version("redis-server", "--version")} if peer.database == "redis" else {})
    libraries = [str(each) for each in PYTHON_HOME.glob("lib/python*/site-packages")]
    installed = {each.metadata["Name"].lower(): each.version for each in distributions(path=libraries)}
    # The virtual environment was created by the Python that runs this.
    return {"Python": platform.python_version()} | {part: installed[part.lower()] for part in peer.parts}

"""The peers compared with Taproof: storage, request format and versions of each."""

import json
import platform
import re
import subprocess
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Final, Literal

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent.parent
BUILD: Final = ROOT / "build" / "bench"
MODULES: Final = HERE / "node_modules"
PYTHON_HOME: Final = BUILD / "peers-venv"

Program = Literal["node", "gunicorn", "nginx"]
FigureName = Literal["poll", "create", "cycle"]
ALL_FIGURES: Final[tuple[FigureName, ...]] = ("poll", "create", "cycle")


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
    storage: str
    is_durable: bool
    dialect: Dialect
    parts: tuple[str, ...]
    """Packages whose versions belong to the figures."""
    processes: int = 1
    most_processes: int = 2
    """More processes than this cannot share the sign-ins, because memory is not shared."""
    figures: tuple[FigureName, ...] = ALL_FIGURES


_OIDC: Final = Dialect("form", "/device/auth", "/token", "id_token")
_BETTER_AUTH: Final = Dialect("json", "/api/auth/device/code", "/api/auth/device/token", "access_token")
_DJANGO: Final = Dialect("form", "/o/device-authorization/", "/o/token/", "access_token")
_SQLITE: Final = "SQLite, synchronous=FULL"
_DJANGO_PARTS: Final = ("django-oauth-toolkit", "Django", "oauthlib", "gunicorn")

PEERS: Final = (
    Peer(
        "oidc-provider, in memory",
        "node",
        "oidc_provider.mjs",
        "memory",
        is_durable=False,
        dialect=_OIDC,
        parts=("oidc-provider",),
        most_processes=1,
    ),
    Peer(
        "oidc-provider on SQLite",
        "node",
        "oidc_provider.mjs",
        _SQLITE,
        is_durable=True,
        dialect=_OIDC,
        parts=("oidc-provider", "better-sqlite3"),
    ),
    Peer(
        "better-auth",
        "node",
        "better_auth.mjs",
        _SQLITE,
        is_durable=True,
        dialect=_BETTER_AUTH,
        parts=("better-auth", "better-sqlite3"),
    ),
    Peer(
        "django-oauth-toolkit",
        "gunicorn",
        "django_peer",
        _SQLITE,
        is_durable=True,
        dialect=_DJANGO,
        parts=_DJANGO_PARTS,
    ),
    Peer(
        "django-oauth-toolkit, 2 workers",
        "gunicorn",
        "django_peer",
        _SQLITE,
        is_durable=True,
        dialect=_DJANGO,
        parts=_DJANGO_PARTS,
        processes=2,
    ),
)

FLOOR: Final = Peer(
    "nginx, a constant answer",
    "nginx",
    "",
    "nothing",
    is_durable=False,
    dialect=Dialect("json", "", "", ""),
    parts=(),
    figures=("poll",),
)


def node() -> str:
    """Return the Node.js that npm installed with the peers, or the machine's own if none fits it."""
    return next((str(each) for each in MODULES.glob("node-linux-*/bin/node")), "node")


def versions(peer: Peer) -> dict[str, str]:
    """Return the versions that a peer's figures depend on, by name. The peer must be installed."""
    if peer.program == "nginx":
        told = subprocess.run(["nginx", "-v"], capture_output=True, text=True, check=True).stderr
        found = re.search(r"nginx/(\S+)", told)
        return {"nginx": found[1] if found else "unknown"}
    if peer.program == "node":
        runtime = subprocess.run([node(), "--version"], capture_output=True, text=True, check=True).stdout
        packages = {part: json.loads((MODULES / part / "package.json").read_text("utf-8")) for part in peer.parts}
        return {"Node.js": runtime.strip().lstrip("v")} | {part: each["version"] for part, each in packages.items()}
    libraries = [str(each) for each in PYTHON_HOME.glob("lib/python*/site-packages")]
    installed = {each.metadata["Name"].lower(): each.version for each in distributions(path=libraries)}
    # The virtual environment was created by the Python that runs this.
    return {"Python": platform.python_version()} | {part: installed[part.lower()] for part in peer.parts}

"""Finds the HTTP proxy of the network for an address, in the variables that other programs such as curl use too."""

import ipaddress
import re
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

_PORTS: Final = {"http": 80, "https": 443}


class UnusableProxy(ValueError):
    """The variable for an address names no HTTP proxy. The message does not contain its value."""


class EnvironmentProxy(NamedTuple):
    """A proxy. Only `username` and `password` are secret."""

    variable: str
    scheme: str
    host: str
    port: int
    username: str
    password: str

    @property
    def address(self) -> str:
        """The URL of the proxy, without the password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def __repr__(self) -> str:
        """Return the address and the variable, without the password."""
        return f"{self.address} ({self.variable})"


def find_proxy(url: str, environment: Mapping[str, str]) -> EnvironmentProxy | None:
    """Return the proxy through which `url` is to be reached; None if it is reached directly.

    `https_proxy` or `http_proxy` (by the scheme of `url`) counts before `all_proxy`, and lower case before upper case.
    Addresses of this machine and those in `no_proxy` are reached directly.
    """
    parts = urlsplit(url)
    host, port = (parts.hostname or "").rstrip("."), parts.port or _PORTS.get(parts.scheme, 0)
    names = [f"{parts.scheme}_proxy", f"{parts.scheme}_PROXY".upper(), "all_proxy", "ALL_PROXY"]
    variable = next((name for name in names if environment.get(name, "").strip()), None)
    excepted = environment.get("no_proxy", "") or environment.get("NO_PROXY", "")
    if variable is None or _is_own(host) or _is_excepted(host, port, excepted):
        return None
    return _read_proxy(variable, environment[variable].strip())


def _read_proxy(variable: str, value: str) -> EnvironmentProxy:
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if not host or re.fullmatch(r"[\w.:-]+", host, re.ASCII) is None:
        raise UnusableProxy(f"{variable} is not the address of a proxy, such as http://proxy.example.com:3128.")
    if parts.scheme not in _PORTS:
        raise UnusableProxy(
            f"{variable} names a proxy that is not an HTTP proxy. Only http:// and https:// proxies can be used, not "
            "SOCKS. Set HTTPS_PROXY to an HTTP proxy, or add the host that needs no proxy to NO_PROXY."
        )
    username, password = unquote(parts.username or ""), unquote(parts.password or "")
    if not f"{username}{password}".isascii():
        raise UnusableProxy(f"The user or the password in {variable} has characters other than ASCII. Use another one.")
    return EnvironmentProxy(variable, parts.scheme, host, port or _PORTS[parts.scheme], username, password)


def _is_own(host: str) -> bool:
    address = _ip(host)
    return host == "localhost" or host.endswith(".localhost") or (address is not None and address.is_loopback)


def _is_excepted(host: str, port: int, excepted: str) -> bool:
    """Return whether `no_proxy` names this host, a domain above it, or its network, with or without this port."""
    for entry in re.split(r"[\s,]+", excepted.lower()):
        name, wanted = entry.strip("[]"), None
        if found := re.fullmatch(r"(?:\[([^\]]*)\]|([^:]*)):([0-9]{1,5})", entry):
            name, wanted = found[1] or found[2], int(found[3])
        if (wanted is None or wanted == port) and _matches(host, name):
            return True
    return False


def _matches(host: str, name: str) -> bool:
    if name == "*":
        return True
    address = _ip(host)
    if address is not None:
        try:
            return address in ipaddress.ip_network(name, strict=False)
        except ValueError:
            return False
    name = name.removeprefix("*").strip(".")
    return bool(name) and (host == name or host.endswith(f".{name}"))


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None

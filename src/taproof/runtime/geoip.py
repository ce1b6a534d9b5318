"""Finds the approximate place of an IP address in a GeoIP file: an .mmdb of cities or countries, from MaxMind or DB-IP.

The format: https://maxmind.github.io/MaxMind-DB/. Nothing is sent over the network.
"""

from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Any, Final

import maxminddb
import structlog

from taproof.config.options import called
from taproof.core.clock import MINUTE, Clock
from taproof.core.errors import TaproofError
from taproof.core.names import visible_name

LOOK_EVERY: Final = MINUTE
"""Time between two checks for a replaced file, in ms."""
_NAME_LIMIT: Final = 60

_log = structlog.get_logger(__name__)


class GeoIpFileUnusable(TaproofError, code="geo_ip_file_unusable"):
    """The GeoIP file cannot be read, or contains no locations."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"{called('geoip_file')} cannot be used: {reason}. Set it to the .mmdb file of a City or Country database, "
            "such as GeoLite2-City.mmdb or dbip-city-lite.mmdb, or leave it out."
        )


class GeoIpFile:
    """Finds places in a file, and reads the file again when it is replaced.

    The file is mapped into memory, so an update must replace it as a whole, as `geoipupdate` and `mv` do. Truncating
    the file while it is in use kills the process.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._version = _version(path)
        self._reader = open_geoip(path)
        self._looked_at = clock()
        self._damage_is_logged = False

    def find_place(self, address: str) -> str:
        """Return "Berlin, Germany", "Germany", or "" if the place is unknown."""
        self._look_again()
        try:
            ip = ip_address(address)
        except ValueError:
            return ""
        if isinstance(ip, IPv6Address):
            ip = ip.ipv4_mapped or ip
        if not ip.is_global or (ip.version == 6 and self._reader.metadata().ip_version == 4):
            return ""
        try:
            return _place(self._reader.get(ip))
        except maxminddb.InvalidDatabaseError:
            if not self._damage_is_logged:
                _log.error("geoip_file_damaged", advice=f"Replace the file of {called('geoip_file')}.")
            self._damage_is_logged = True
            return ""

    def _look_again(self) -> None:
        """Open the file again if it has been replaced; if that fails, keep using the old one."""
        now = self._clock()
        if 0 <= now - self._looked_at < LOOK_EVERY:
            return
        self._looked_at = now
        version = _version(self._path)
        if version in {self._version, None}:
            return
        self._version = version
        try:
            reader = open_geoip(self._path)
        except GeoIpFileUnusable as error:
            _log.error("geoip_file_unusable", reason=str(error), advice="The previous file stays in use.")
            return
        self._reader.close()
        self._reader = reader
        self._damage_is_logged = False
        _log.info("geoip_file_read", type=reader.metadata().database_type)


def place_finder(path: Path | None, clock: Clock) -> Callable[[str], str]:
    """Return a function that finds the place of an address; without a file it always returns ""."""
    return (lambda _address: "") if path is None else GeoIpFile(path, clock).find_place


def open_geoip(path: Path) -> maxminddb.Reader:
    """Open a GeoIP file; raises GeoIpFileUnusable."""
    try:
        reader = maxminddb.open_database(path, maxminddb.MODE_AUTO)
    except OSError as error:
        raise GeoIpFileUnusable(error.strerror or "it cannot be read") from None
    except (maxminddb.InvalidDatabaseError, ValueError):
        raise GeoIpFileUnusable("it is not a MaxMind DB file, or is damaged") from None
    kind = reader.metadata().database_type
    if not any(word in kind for word in ("City", "Country", "Enterprise", "Location")):
        reader.close()
        raise GeoIpFileUnusable(f"its type is {visible_name(kind)[:_NAME_LIMIT]}, which contains no places")
    return reader


def _version(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _place(record: Any) -> str:
    """Return the city and the country of a record."""
    return ", ".join(name for name in (_name(record, "city"), _name(record, "country")) if name)


def _name(record: Any, part: str) -> str:
    found = record.get(part) if isinstance(record, dict) else None
    names = found.get("names") if isinstance(found, dict) else None
    name = names.get("en") if isinstance(names, dict) else None
    return name[:_NAME_LIMIT] if isinstance(name, str) else ""

"""The GeoIP file: the location that it gives, its replacement, and unusable files."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.mmdb import place, write_mmdb

from taproof.cli.doctor.geoip import check_geoip
from taproof.config.settings import load_settings
from taproof.core.clock import DAY, MINUTE, SECOND, system_clock
from taproof.runtime.geoip import GeoIpFile, GeoIpFileUnusable, place_finder

BERLIN, LYON = "8.8.8.8", "2a00:1450::1"
PLACES = {
    "8.8.8.0/24": place("Germany", "Berlin"),
    "9.9.0.0/16": place("Japan"),
    "2a00:1450::/32": place("France", "Lyon"),
    "127.0.0.0/8": place("Nowhere"),
    "10.0.0.0/8": place("Nowhere"),
    "4000::/8": place("Nowhere"),
}


class HandClock:
    def __init__(self) -> None:
        self.now = 1_795_214_643_127

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_mmdb(tmp_path / "city.mmdb", PLACES)


@pytest.mark.parametrize(
    ("address", "found"),
    [
        (BERLIN, "Berlin, Germany"),
        ("::ffff:8.8.8.8", "Berlin, Germany"),
        (LYON, "Lyon, France"),
        ("9.9.9.9", "Japan"),
        ("1.1.1.1", ""),
        ("127.0.0.1", ""),
        ("::ffff:127.0.0.1", ""),
        ("10.1.2.3", ""),
        ("192.168.1.1", ""),
        ("::1", ""),
        ("fe80::1", ""),
        ("169.254.169.254", ""),
        ("203.0.113.7", ""),
        ("", ""),
        ("unknown", ""),
        ("8.8.8.8:443", ""),
    ],
)
def test_place_of_an_address(address: str, found: str, file: Path, clock: HandClock) -> None:
    """Town and country are in English as far as they are known; an address that is not public has no location."""
    assert place_finder(file, clock)(address) == found
    assert place_finder(None, clock)(address) == ""


def test_file_of_ipv4_only(tmp_path: Path, clock: HandClock) -> None:
    """A file without IPv6 addresses gives no location for them, and no error."""
    file = write_mmdb(tmp_path / "c.mmdb", {"8.8.8.0/24": place("Germany")}, kind="DBIP-Country-Lite", version=4)
    find = place_finder(file, clock)
    assert [find(BERLIN), find("::ffff:8.8.8.8"), find(LYON)] == ["Germany", "Germany", ""]


@pytest.mark.parametrize(
    "record",
    [
        {},
        [],
        "Berlin",
        {"city": "Berlin", "country": ["Germany"]},
        {"city": {"names": {"de": "München"}}},
        {"country": {"names": []}},
        {"country": {"names": {"en": {}}}},
    ],
)
def test_record_of_another_form_tells_nothing(record: object, tmp_path: Path, clock: HandClock) -> None:
    """No content of a file makes a sign-in fail."""
    file = write_mmdb(tmp_path / "odd.mmdb", {"8.8.8.0/24": record})
    assert place_finder(file, clock)(BERLIN) == ""


def test_file_that_takes_its_place_is_taken_up(file: Path, clock: HandClock) -> None:
    """A replaced file is read within a minute, without a restart, and checked no more often."""
    find = GeoIpFile(file, clock).find_place
    write_mmdb(file.with_name("new.mmdb"), {"8.8.8.0/24": place("Spain", "Madrid")}).replace(file)
    clock.now += MINUTE - 1
    assert find(BERLIN) == "Berlin, Germany"
    clock.now += 1
    assert find(BERLIN) == "Madrid, Spain"


@pytest.mark.parametrize("content", [b"", b"no database", None])
def test_file_that_cannot_take_its_place_is_told_of(content: bytes | None, file: Path, clock: HandClock) -> None:
    """The previous file stays in use until a valid one replaces it."""
    find = GeoIpFile(file, clock).find_place
    if content is None:
        file.unlink()
    else:
        file.with_name("new.mmdb").write_bytes(content)
        file.with_name("new.mmdb").replace(file)
    with capture_logs() as logs:
        for _ in range(3):
            clock.now += MINUTE
            assert find(BERLIN) == "Berlin, Germany"
    assert [entry["event"] for entry in logs] == ([] if content is None else ["geoip_file_unusable"])
    write_mmdb(file.with_name("new.mmdb"), {"8.8.8.0/24": place("Spain")}).replace(file)
    clock.now += MINUTE
    assert find(BERLIN) == "Spain"


def test_damaged_file_fails_no_sign_in(file: Path, clock: HandClock) -> None:
    """A file with a damaged tree is logged once, and gives no location."""
    content = bytearray(file.read_bytes())
    end = content.index(bytes(16) + b"\xe2")
    content[end + 16 : end + 40] = b"\xff" * 24
    file.write_bytes(content)
    find = GeoIpFile(file, clock).find_place
    with capture_logs() as logs:
        assert [find(address) for address in (BERLIN, "9.9.9.9", LYON, BERLIN)].count("") >= 1
    assert [entry["event"] for entry in logs] == ["geoip_file_damaged"]


@pytest.mark.parametrize("content", [b"", b"text", b"\xab\xcd\xefMaxMind.com", b"\xab\xcd\xefMaxMind.com\xff\xff"])
def test_what_is_no_database_stops_the_start(content: bytes, tmp_path: Path, clock: HandClock) -> None:
    """The sentence names the setting and says what to give."""
    file = tmp_path / "x.mmdb"
    file.write_bytes(content)
    with pytest.raises(GeoIpFileUnusable, match=r"^--geoip-file .*cannot be used: .*City or Country database"):
        place_finder(file, clock)


def test_database_without_places_stops_the_start(tmp_path: Path, clock: HandClock) -> None:
    """A file of network owners is a MaxMind DB too, and the easiest mistake."""
    file = write_mmdb(
        tmp_path / "asn.mmdb", {"8.8.8.0/24": {"autonomous_system_organization": "X"}}, kind="GeoLite2-ASN"
    )
    with pytest.raises(GeoIpFileUnusable, match="GeoLite2-ASN, which contains no places"):
        place_finder(file, clock)


def test_doctor_tells_type_and_age(file: Path, tmp_path: Path) -> None:
    """A file that is half a year old is a warning, an unusable one a problem; without a file, there is no line."""
    built = 1_795_000_000 * SECOND
    settings = load_settings({"geoip_file": str(file)})
    [found] = check_geoip(settings, built + 179 * DAY)
    assert (found.name, found.status, found.detail) == ("geoip file", "ok", "GeoLite2-City of 2026-11-18")
    [found] = check_geoip(settings, built + 181 * DAY)
    assert (found.status, bool(found.advice)) == ("warning", True)
    file.with_name("bad.mmdb").write_bytes(b"bad")
    file.with_name("bad.mmdb").replace(file)
    [found] = check_geoip(settings, built)
    assert (found.status, bool(found.advice)) == ("problem", True)
    assert check_geoip(load_settings({}), system_clock()) == []

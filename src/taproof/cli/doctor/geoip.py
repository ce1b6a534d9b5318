"""Check the GeoIP file."""

from datetime import UTC, datetime
from typing import Final

from taproof.cli.doctor.finding import Finding, from_sentences, ok, warning
from taproof.config.settings import Settings
from taproof.core.clock import DAY, SECOND
from taproof.core.names import visible_name
from taproof.runtime.geoip import GeoIpFileUnusable, open_geoip

_OLD: Final = 180 * DAY
"""Addresses change owners, and publishers update these files every week or month."""


def check_geoip(settings: Settings, now: int) -> list[Finding]:
    """Check the GeoIP file and its age, if one is set; `now` in ms."""
    if settings.geoip_file is None:
        return []
    try:
        reader = open_geoip(settings.geoip_file)
    except GeoIpFileUnusable as error:
        return [from_sentences("geoip file", "problem", str(error))]
    metadata = reader.metadata()
    reader.close()
    built = datetime.fromtimestamp(metadata.build_epoch, UTC)
    detail = f"{visible_name(metadata.database_type)[:60]} of {built:%Y-%m-%d}"
    if now - metadata.build_epoch * SECOND > _OLD:
        return [warning("geoip file", detail, "Its places are out of date. Replace it with a newer file.")]
    return [ok("geoip file", detail)]

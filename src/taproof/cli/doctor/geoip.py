"""The doctor's look at the GeoIP file."""

from datetime import UTC, datetime
from typing import Final

from taproof.cli.doctor.finding import Finding, from_sentences
from taproof.config.settings import Settings
from taproof.core.clock import DAY, SECOND
from taproof.core.names import visible_name
from taproof.runtime.geoip import GeoIpFileUnusable, open_geoip

_OLD: Final = 180 * DAY
"""Addresses change hands, and makers of such files publish one every week or month."""


def check_geoip(settings: Settings, now: int) -> list[Finding]:
    """Look at the GeoIP file and its age, if there is one; `now` in ms."""
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
        return [Finding("geoip file", "warning", detail, "Replace it with a newer one: its places are out of date.")]
    return [Finding("geoip file", "ok", detail)]

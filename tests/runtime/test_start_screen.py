"""What `taproof serve` prints once it serves."""

import pytest

from taproof.config.settings import load_settings
from taproof.runtime.start_screen import print_screen


@pytest.mark.parametrize(
    ("base_url", "told"),
    [
        ("http://127.0.0.1:8080", True),
        ("http://localhost", True),
        ("http://127.0.0.1:9000", False),
    ],
)
def test_links_to_another_port_are_told(capsys: pytest.CaptureFixture[str], *, base_url: str, told: bool) -> None:
    """An application's own TAPROOF_BASE_URL in the same terminal sends every printed link to where nobody listens."""
    print_screen(load_settings({"sandbox": True, "port": 9000, "base_url": base_url}), None, None, link_known=True)
    screen = capsys.readouterr().out
    assert ("unset TAPROOF_BASE_URL, or end it with :9000" in screen) is told

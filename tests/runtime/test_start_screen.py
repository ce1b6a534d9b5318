"""The output of `taproof serve` once it serves."""

import re

import pytest

from taproof.config.settings import load_settings
from taproof.core.accounts import Developer
from taproof.core.projects import Project
from taproof.runtime.start_screen import print_screen
from taproof.sandbox.seed import Seed


@pytest.mark.parametrize(
    ("base_url", "told"),
    [
        ("http://127.0.0.1:8080", True),
        ("http://localhost", True),
        ("http://127.0.0.1:9000", False),
    ],
)
def test_links_to_another_port_are_told(capsys: pytest.CaptureFixture[str], *, base_url: str, told: bool) -> None:
    """If an application's own TAPROOF_BASE_URL is set in the same terminal, every printed link would lead nowhere."""
    print_screen(load_settings({"sandbox": True, "port": 9000, "base_url": base_url}), None, None, link_known=True)
    screen = capsys.readouterr().out
    assert ("unset TAPROOF_BASE_URL, or end it with :9000" in screen) is told


def test_the_sandbox_begins_with_one_address(capsys: pytest.CaptureFixture[str]) -> None:
    """The first address is the one to open. The lines to paste begin at the edge, and set what the docs use."""
    developer = Developer("dev_1", "sandbox@localhost", "business", 0, is_owner=True)
    project = Project(
        id="proj_example",
        developer_id=developer.id,
        name="Shop",
        secret_key_preview="sk_aaaa…zzzz",
        encrypted_webhook_secret=b"encrypted",
        webhook_url="",
        is_active=True,
        public_access=True,
        collect_phone=False,
        created_at=0,
    )
    seed = Seed(developer, project, "tap_example", None)
    print_screen(load_settings({"sandbox": True, "port": 9000}), seed, "inv_example", link_known=True)
    screen = capsys.readouterr().out
    assert re.findall(r"http\S+", screen)[0] == "http://127.0.0.1:9000/demo"
    assert re.findall(r"(?m)^export .*$", screen) == [
        "export TAPROOF_BASE_URL=http://127.0.0.1:9000",
        "export TAPROOF_PROJECT_ID=proj_example",
        "export ACCESS_TOKEN=tap_example",
    ]


def test_a_new_service_begins_with_the_invitation(capsys: pytest.CaptureFixture[str]) -> None:
    """Until there is a developer, the first address is the one that creates the first account."""
    print_screen(load_settings({"port": 9000}), None, "inv_example", link_known=True)
    assert re.findall(r"http\S+", capsys.readouterr().out)[0] == "http://127.0.0.1:9000/console/invite#inv_example"

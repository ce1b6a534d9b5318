"""Refused credentials are logged by kind and address, never with their content."""

from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.console.browsing import Browsing
from tests.console.conftest import Installation
from tests.console.test_sign_in import SIGN_IN, WAITING, bind, new_token, start

from taproof.core.identity import MessengerIdentity

INVITE = "/console/invite"
WITH_TOKEN = f"{SIGN_IN}/token"


def lines(logs: list[Any]) -> list[Any]:
    return [line for line in logs if line["event"] == "credentials_refused"]


@pytest.mark.parametrize(
    ("page", "action", "kind", "field", "given"),
    [
        (SIGN_IN, WITH_TOKEN, "access_token", "access_token", f"tap_{'Q' * 49}"),
        (SIGN_IN, WITH_TOKEN, "access_token", "access_token", "QQQQ"),
        (INVITE, INVITE, "invitation", "code", f"inv_{'Q' * 49}"),
    ],
)
async def test_a_wrong_credential(
    anonymous: Browsing, page: str, action: str, kind: str, field: str, given: str
) -> None:
    """Wrong access tokens and invitation codes of any shape are logged."""
    with capture_logs() as logs:
        assert (await anonymous.submit(page, action, **{field: given})).status in {401, 404}
    [line] = lines(logs)
    assert (line["kind"], line["method"], line["route"]) == (kind, "POST", action)
    assert line["address"]
    assert "QQQQ" not in repr(logs)


async def test_a_messenger_account_of_nobody(console: Installation, anonymous: Browsing) -> None:
    """A messenger account without a developer is logged without its identity."""
    await console.messenger.confirm(await start(anonymous), MessengerIdentity("77123", "Eve", "evelyn"))
    with capture_logs() as logs:
        assert (await anonymous.get(WAITING)).status == 403
    [line] = lines(logs)
    assert (line["kind"], line["route"]) == ("messenger_account", WAITING)
    assert not [each for each in ("77123", "Eve", "evelyn") if each in repr(logs)]


async def test_a_sign_in_is_not_logged_as_refused(console: Installation, anonymous: Browsing) -> None:
    """Successful sign-ins are not logged as refused; the audit log has them."""
    ada = await console.add_developer("ada@example.com")
    await bind(console, ada)
    _, token = await new_token(console, ada)
    with capture_logs() as logs:
        link = await start(anonymous)
        await console.messenger.confirm(link)
        assert (await anonymous.get(WAITING)).status == 303
        await anonymous.get("/console/account")
        anonymous.client.cookies.clear()
        assert (await anonymous.submit(SIGN_IN, WITH_TOKEN, access_token=token)).status == 303
    assert lines(logs) == []

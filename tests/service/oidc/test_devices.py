"""The device grant (RFC 8628)."""

import asyncio
from typing import Any

import pytest
from tests.openid_provider import ADA, ISSUER, REQUESTER, InBrowser, Provider, Shop, error_of

from taproof.core.clock import MINUTE, SECOND
from taproof.core.entropy import system_entropy
from taproof.core.errors import ProjectPaused
from taproof.service.housekeeping import Housekeeping
from taproof.service.oidc.devices import UserCodeUnknown


async def typed(provider: Provider, user_code: str) -> InBrowser:
    """Type the code in a browser and continue."""
    return InBrowser(provider, await provider.devices.continue_device(user_code, REQUESTER))


async def test_a_whole_grant(provider: Provider, shop: Shop) -> None:
    """The response has the fields of RFC 8628, section 3.2; after Confirm, the device gets its tokens once."""
    begun = await shop.begin_device()
    assert set(begun) == {
        *("device_code", "user_code", "verification_uri", "verification_uri_complete", "expires_in", "interval")
    }
    assert (begun["expires_in"], begun["interval"]) == (600, 5)
    assert begun["verification_uri"] == f"{ISSUER}/device"
    assert begun["verification_uri_complete"] == f"{ISSUER}/device?user_code={begun['user_code']}"
    assert await error_of(shop.poll(begun["device_code"])) == "authorization_pending"
    browser = await typed(provider, begun["user_code"])
    assert (await browser.see()).request.redirect_uri == ""
    provider.later(5 * SECOND)
    assert await error_of(shop.poll(begun["device_code"])) == "authorization_pending"
    await browser.confirm()
    assert (await browser.see()).state == "device_done"
    provider.later(5 * SECOND)
    tokens = await shop.poll(begun["device_code"])
    assert (await provider.access_tokens.read_user(tokens["access_token"]))["sub"] == ADA.messenger_id
    assert (await browser.see()).state == "device_done"
    provider.later(5 * SECOND)
    assert await error_of(shop.poll(begun["device_code"])) == "invalid_grant"


async def test_slow_down_recovers(provider: Provider, shop: Shop) -> None:
    """A device that polls too fast is told so, and gets its tokens once it waits (RFC 8628, section 3.5)."""
    begun = await shop.begin_device()
    browser = await typed(provider, begun["user_code"])
    answers = []
    for wait in (0, 1, 2, 5, 4, 3):
        provider.later(wait * SECOND)
        answers.append(await error_of(shop.poll(begun["device_code"])))
    slow, pending = "slow_down", "authorization_pending"
    # Four seconds are enough, because two requests of a punctual device can take different times.
    assert answers == [pending, slow, slow, pending, pending, slow]
    await browser.confirm()
    provider.later(2 * SECOND)
    assert await error_of(shop.poll(begun["device_code"])) == slow
    provider.later(10 * SECOND)
    assert "id_token" in await shop.poll(begun["device_code"])


async def test_final_errors(provider: Provider, shop: Shop) -> None:
    """A refusal at the code, a Cancel in the messenger, and the end of the ten minutes each have their error."""
    refused = await shop.begin_device()
    await provider.devices.refuse_device(refused["user_code"])
    cancelled = await shop.begin_device()
    browser = await typed(provider, cancelled["user_code"])
    await provider.node.signin.cancel_session(await browser.open(), ADA.messenger_id)
    assert not (await browser.see()).can_start_again
    expired = await shop.begin_device()
    late = await typed(provider, (await shop.begin_device())["user_code"])
    for begun, error in ((refused, "access_denied"), (cancelled, "access_denied"), (expired, "authorization_pending")):
        assert await error_of(shop.poll(begun["device_code"])) == error
    provider.later(10 * MINUTE)
    assert await error_of(shop.poll(expired["device_code"])) == "expired_token"
    assert (await late.see()).state == "expired"
    with pytest.raises(UserCodeUnknown):
        await typed(provider, expired["user_code"])
    assert await error_of(shop.poll("unknown")) == "invalid_grant"


async def test_an_expired_code_is_kept_for_a_while(provider: Provider, shop: Shop) -> None:
    """Housekeeping keeps an expired sign-in for ten minutes, so a device that polls late learns that it expired."""
    housekeeping = Housekeeping(provider.node.storage, provider.node.encryptor, provider.node.clock, system_entropy, 90)
    begun = await shop.begin_device()
    for wait, error in ((10 * MINUTE, "expired_token"), (10 * MINUTE, "invalid_grant")):
        provider.later(wait)
        await housekeeping.sweep()
        assert await error_of(shop.poll(begun["device_code"])) == error


async def test_a_session_that_cannot_be_created(provider: Provider, shop: Shop) -> None:
    """If the project is paused meanwhile, the device learns at once that it has to start again."""
    begun = await shop.begin_device()
    await shop.change_project(is_active=False)
    with pytest.raises(ProjectPaused):
        await typed(provider, begun["user_code"])
    assert await error_of(shop.poll(begun["device_code"])) == "access_denied"


async def test_a_code_belongs_to_its_client(provider: Provider, shop: Shop) -> None:
    """Another client gets nothing for a device code, and the right one still can use it."""
    begun = await shop.begin_device()
    await (await typed(provider, begun["user_code"])).confirm()
    other = await provider.shop(beside=shop)
    assert await error_of(other.poll(begun["device_code"])) == "invalid_grant"
    provider.later(5 * SECOND)
    assert "id_token" in await shop.poll(begun["device_code"])


async def test_a_code_is_bound_once(provider: Provider, shop: Shop) -> None:
    """Of many browsers that enter a code at the same time, one is bound to it. Afterwards, the code is unknown."""
    begun = await shop.begin_device()
    variants = (begun["user_code"], begun["user_code"].lower(), begun["user_code"].replace("-", " "))
    results: list[Any] = await asyncio.gather(*(typed(provider, each) for each in variants * 3), return_exceptions=True)
    (browser,) = (each for each in results if isinstance(each, InBrowser))
    assert all(isinstance(each, UserCodeUnknown) for each in results if each is not browser)
    with pytest.raises(UserCodeUnknown):
        await provider.devices.refuse_device(begun["user_code"])
    await browser.confirm()
    assert "id_token" in await shop.poll(begun["device_code"])


async def test_of_many_polls_one_gets_tokens(provider: Provider, shop: Shop) -> None:
    """Polls at the same time give one set of tokens."""
    begun = await shop.begin_device()
    await (await typed(provider, begun["user_code"])).confirm()
    answers = await asyncio.gather(*(shop.poll(begun["device_code"]) for _ in range(8)), return_exceptions=True)
    assert sum(isinstance(each, dict) for each in answers) == 1


async def test_what_begins_no_grant(provider: Provider, shop: Shop) -> None:
    """A paused project, same_device `require` and a scope without openid start nothing.

    All unknown codes get one answer.
    """
    assert await error_of(shop.begin_device("profile")) == "invalid_scope"
    assert "user_code" in await shop.begin_device("")  # RFC 8628, section 3.1: the scope is optional.
    await shop.change_project(same_device="require", allowed_origins=("https://shop.example",))
    assert await error_of(shop.begin_device()) == "unauthorized_client"
    await shop.change_project(same_device="off", is_active=False)
    assert await error_of(shop.begin_device()) == "unauthorized_client"
    for text in ("", "BBBB-BBBB", "bbbbbbbb", "not a code", "\x00" * 8):
        with pytest.raises(UserCodeUnknown):
            await provider.devices.find_device(text)

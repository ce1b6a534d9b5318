"""Developer accounts and their access tokens."""

from typing import TYPE_CHECKING

import pytest
from tests.service.conftest import acting

from taproof.core.clock import MINUTE
from taproof.core.entropy import system_entropy
from taproof.core.errors import (
    DeveloperExists,
    DeveloperNotFound,
    InvalidAccessToken,
    InvalidRequest,
    TooManyAccessTokens,
)
from taproof.service.developers import Developers

if TYPE_CHECKING:
    from tests.service.conftest import Node


async def test_addresses_are_accepted_and_found_again(node: "Node") -> None:
    """An address is trimmed, stored as typed, and found case-insensitively."""
    for email in ("ada@example.com", "  ada+tag@sub.example.co \n", "a@b", "A_d-a!#$%&'*@Example.COM"):
        developer = await node.developers.create_developer(email, "pro")
        assert developer.email == email.strip()
        assert await node.developers.read_developer(email.upper()) == developer
        with pytest.raises(DeveloperExists):
            await node.developers.create_developer(email.swapcase(), "free")


async def test_what_is_no_address_is_refused(node: "Node") -> None:
    """The refusal names the field, and nothing is stored. A different or malformed address finds no developer."""
    for email in (
        *("", "ada", "@example.com", "ada@", "ada@@example.com", "a b@example.com", "ada@exa mple.com"),
        *("ada@-example.com", "ada@example.com\nbob@example.com", "ada\0@example.com", "ада@example.com"),
        *("ada@пример.example", "\ud800@example.com", "x" * 65 + "@example.com", "ada@" + "x" * 260, "x" * 1_000_000),
    ):
        with pytest.raises(InvalidRequest, match=r"^email "):
            await node.developers.create_developer(email, "free")
    assert await node.developers.list_developers() == []
    for email in ("nobody@example.com", "\udcff@example.com"):
        with pytest.raises(DeveloperNotFound, match="developers add"):
            await node.developers.read_developer(email)


async def test_malformed_and_unknown_tokens_are_refused_alike(node: "Node") -> None:
    """Missing, mistyped, unknown and other kinds of keys get the same error and sentence."""
    ada = await node.developer()
    _, secrets = await node.project(ada)
    made = await node.developers.create_access_token(acting(ada), "laptop")
    mistyped = made.plaintext[:-1] + ("a" if made.plaintext[-1] != "a" else "b")
    revoked = await node.developers.create_access_token(acting(ada), "old")
    await node.developers.delete_access_token(acting(ada), revoked.token.id)
    sentences = set()
    for bearer in (None, "", mistyped, made.plaintext + "\n", secrets.secret_key, "\ud800", revoked.plaintext, "tap_"):
        with pytest.raises(InvalidAccessToken) as refusal:
            await node.developers.authenticate(bearer)
        sentences.add(refusal.value.sentence)
    assert len(sentences) == 1


async def test_a_token_expires_at_the_instant(node: "Node") -> None:
    """A token is valid until the last millisecond before its expiry."""
    ada = await node.developer()
    made = await node.developers.create_access_token(acting(ada), "CI", expires_at=node.clock.now + 5 * MINUTE)
    node.clock.now += 5 * MINUTE - 1
    assert (await node.developers.authenticate(made.plaintext))[1] == ada
    node.clock.now += 1
    with pytest.raises(InvalidAccessToken, match="expired"):
        await node.developers.authenticate(made.plaintext)


async def test_a_developer_has_so_many_tokens(node: "Node", other_node: "Node") -> None:
    """All tokens of a developer are listed over several pages.

    Revoking one, or its expiry, makes room; the sentence says what to do.
    """
    for each in (node, other_node):
        each.developers = Developers(each.storage, each.clock, system_entropy, token_limit=2)
    ada, bob = await node.developer(), await node.developer()
    made = await node.developers.create_access_token(acting(ada), "laptop")
    await node.developers.create_access_token(acting(ada), "CI", expires_at=node.clock.now + 5)
    with pytest.raises(TooManyAccessTokens, match="Revoke some"):
        await other_node.developers.create_access_token(acting(ada), "third")
    await node.developers.create_access_token(acting(bob), "laptop")
    await node.developers.delete_access_token(acting(ada), made.token.id)
    await node.developers.create_access_token(acting(ada), "third")
    node.clock.now += 5
    await node.developers.create_access_token(acting(ada), "fourth")
    with pytest.raises(TooManyAccessTokens):
        await node.developers.create_access_token(acting(ada), "fifth")
    names = {each.name for each in await node.developers.list_access_tokens(ada.id)}
    assert names == {"CI", "third", "fourth"}


async def test_the_last_use_is_written_once_a_minute_at_most(node: "Node") -> None:
    """A busy token is written once a minute, even when the clock goes back."""
    ada = await node.developer()
    made = await node.developers.create_access_token(acting(ada), "CI")
    first = node.clock.now
    for offset, kept in ((0, 0), (1, 0), (59_999, 0), (60_000, 60_000), (60_001, 60_000), (-90_000, 60_000)):
        node.clock.now = first + offset
        await node.developers.authenticate(made.plaintext)
        (token,) = await node.developers.list_access_tokens(ada.id)
        assert token.last_used_at == first + kept

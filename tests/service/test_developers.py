"""Developer accounts and their access tokens."""

from typing import TYPE_CHECKING

import pytest
from tests.service.conftest import acting

from taproof.core.clock import MINUTE
from taproof.core.errors import (
    AccessTokenNotFound,
    DeveloperExists,
    DeveloperNotFound,
    InvalidAccessToken,
    InvalidRequest,
    TooManyAccessTokens,
)
from taproof.core.identifiers import is_key
from taproof.service import developers

if TYPE_CHECKING:
    from tests.service.conftest import Node


@pytest.mark.parametrize("email", ["ada@example.com", "  ada+tag@sub.example.co \n", "a@b", "A_d-a!#$%&'*@Example.COM"])
async def test_addresses_are_accepted_and_found_again(node: "Node", email: str) -> None:
    """Trimmed, kept as typed, found without regard to case."""
    developer = await node.developers.create_developer(email, "pro")
    assert developer.email == email.strip()
    assert await node.developers.read_developer(email.upper()) == developer
    with pytest.raises(DeveloperExists):
        await node.developers.create_developer(email.swapcase(), "free")
    assert await node.developers.list_developers() == [developer]


@pytest.mark.parametrize(
    "email",
    [
        "",
        "ada",
        "@example.com",
        "ada@",
        "ada@@example.com",
        "a b@example.com",
        "ada@exa mple.com",
        "ada@-example.com",
        "ada@example.com\nbob@example.com",
        "ada\0@example.com",
        "ада@example.com",
        "ada@пример.example",
        "\ud800@example.com",
        "x" * 65 + "@example.com",
        "ada@" + "x" * 260,
        "x" * 1_000_000,
    ],
)
async def test_what_is_no_address_is_refused(node: "Node", email: str) -> None:
    """With the field's name, and nothing is stored."""
    with pytest.raises(InvalidRequest, match=r"^email "):
        await node.developers.create_developer(email, "free")
    assert await node.developers.list_developers() == []


async def test_an_unknown_address_is_not_found(node: "Node") -> None:
    """The command line tells how to add it."""
    with pytest.raises(DeveloperNotFound, match="developers add"):
        await node.developers.read_developer("nobody@example.com")


async def test_an_address_that_is_no_text_is_not_found(node: "Node") -> None:
    """A command-line argument in another encoding arrives with lone surrogates."""
    with pytest.raises(DeveloperNotFound):
        await node.developers.read_developer("\udcff@example.com")


async def test_a_token_opens_its_developers_account(node: "Node") -> None:
    """The plaintext is given once; the store holds its hash and a preview."""
    ada, bob = await node.developer(), await node.developer()
    of_ada = await node.developers.create_access_token(acting(ada), " laptop ")
    of_bob = await node.developers.create_access_token(acting(bob), "laptop")
    assert is_key(of_ada.plaintext, "tap")
    assert of_ada.token.name == "laptop"
    assert (await node.developers.authenticate(of_ada.plaintext))[1] == ada
    assert (await node.developers.authenticate(of_bob.plaintext))[1] == bob
    assert of_ada.plaintext not in repr(node.storage.database.reader.execute("SELECT * FROM access_tokens").fetchall())
    (listed,) = await node.developers.list_access_tokens(ada.id)
    assert (listed.id, listed.preview) == (of_ada.token.id, of_ada.token.preview)
    assert of_ada.plaintext[8:-4] not in listed.preview


async def test_malformed_and_unknown_tokens_are_refused_alike(node: "Node") -> None:
    """Missing, mistyped, another kind of key, a real-looking one of nobody: one error, one sentence."""
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


@pytest.mark.parametrize(("offset", "valid"), [(-1, True), (0, False), (1, False)])
async def test_a_token_expires_at_the_instant(node: "Node", offset: int, valid: bool) -> None:  # noqa: FBT001 — a table's column.
    """Until the last millisecond before it."""
    ada = await node.developer()
    expires_at = node.clock.now + 5 * MINUTE
    made = await node.developers.create_access_token(acting(ada), "CI", expires_at=expires_at)
    node.clock.now = expires_at + offset
    if valid:
        assert (await node.developers.authenticate(made.plaintext))[1] == ada
    else:
        with pytest.raises(InvalidAccessToken, match="expired"):
            await node.developers.authenticate(made.plaintext)


async def test_an_expiry_lies_in_the_future(node: "Node") -> None:
    """A token that is dead on arrival is a slip of the caller's."""
    ada = await node.developer()
    for expires_at in (0, node.clock.now - 1, node.clock.now):
        with pytest.raises(InvalidRequest, match=r"^expires_at "):
            await node.developers.create_access_token(acting(ada), "CI", expires_at=expires_at)


async def test_a_developer_has_so_many_tokens(
    node: "Node", other_node: "Node", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages and answers list them all. Revoking one, or its expiry, makes room; the sentence says what to do."""
    monkeypatch.setattr(developers, "ACCESS_TOKEN_LIMIT", 2)
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


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "\0", "\u200b", "\ud800", "x" * 101])
async def test_token_names_are_held_to_the_rules_of_names(node: "Node", name: str) -> None:
    """They are shown in a list: the same rules as for projects."""
    ada = await node.developer()
    with pytest.raises(InvalidRequest, match=r"^name "):
        await node.developers.create_access_token(acting(ada), name)


async def test_the_last_use_is_written_once_a_minute_at_most(node: "Node") -> None:
    """This holds for a busy token, and when the clock goes back."""
    ada = await node.developer()
    made = await node.developers.create_access_token(acting(ada), "CI")
    first = node.clock.now
    for offset, kept in ((0, 0), (1, 0), (59_999, 0), (60_000, 60_000), (60_001, 60_000), (-90_000, 60_000)):
        node.clock.now = first + offset
        await node.developers.authenticate(made.plaintext)
        (token,) = await node.developers.list_access_tokens(ada.id)
        assert token.last_used_at == first + kept


async def test_a_revoked_token_is_dead_on_every_node(node: "Node", other_node: "Node") -> None:
    """At once; only its owner can revoke it, and only once."""
    ada, bob = await node.developer(), await node.developer()
    made = await node.developers.create_access_token(acting(ada), "laptop")
    with pytest.raises(AccessTokenNotFound):
        await node.developers.delete_access_token(acting(bob), made.token.id)
    assert (await other_node.developers.authenticate(made.plaintext))[1] == ada
    await node.developers.delete_access_token(acting(ada), made.token.id)
    with pytest.raises(InvalidAccessToken):
        await other_node.developers.authenticate(made.plaintext)
    with pytest.raises(AccessTokenNotFound):
        await node.developers.delete_access_token(acting(ada), made.token.id)


async def test_a_token_id_that_is_no_text_is_not_found(node: "Node") -> None:
    """It comes from the path of a request."""
    ada = await node.developer()
    with pytest.raises(AccessTokenNotFound):
        await node.developers.delete_access_token(acting(ada), "\ud800")

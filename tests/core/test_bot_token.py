"""The form of a bot's token."""

import pytest

from taproof.core.bot_token import bot_id_of

SECRET = "AAGkBS3d0c7Vw1FhQ9pRz2XyTtUuWvJ-jK_"


def test_a_token_begins_with_the_bots_id() -> None:
    """A token begins with the bot's id, of at most 52 bits, as the Bot API documents."""
    assert bot_id_of(f"7000000001:{SECRET}") == 7_000_000_001
    assert bot_id_of(f"1:{SECRET}") == 1
    assert bot_id_of(f"{2**52 - 1}:{SECRET}") == 2**52 - 1


@pytest.mark.parametrize(
    "token",
    [
        "",
        SECRET,
        f":{SECRET}",
        f"0:{SECRET}",
        f"007:{SECRET}",
        f"-7:{SECRET}",
        f"{2**52}:{SECRET}",
        f"{'9' * 5000}:{SECRET}",
        f"٧:{SECRET}",
        "7000000001:",
        "7000000001:short",
        f"7000000001:{SECRET * 5}",
        f"7000000001:{SECRET}/getMe",
        f"7000000001:{SECRET}\n",
        f" 7000000001:{SECRET}",
        f"7000000001:{SECRET}:{SECRET}",
        f"bot7000000001:{SECRET}",
    ],
)
def test_nothing_else_is_a_token(token: str) -> None:
    """0 is the service's own bot, another spelling would be another bot, and a slash would change the address."""
    assert bot_id_of(token) is None

"""The limits on messages to one user, which do not affect other users."""

import pytest
from tests.messengers.telegram.conftest import Fault, Phone, ScriptedApi, unmeasured_intake

from taproof.core.clock import MINUTE
from taproof.messengers.reply_limits import PROMPTS, REPLIES
from taproof.messengers.telegram.bot_api import Bot
from taproof.messengers.telegram.handlers import Conversation
from taproof.messengers.texts.catalog import LANGUAGES

EN = LANGUAGES["en"]


async def open_new(phone: Phone, user_id: int = 11) -> str:
    session_token = await phone.create_session()
    assert await phone.handle(phone.message(f"/start {session_token}", user_id)) == "done"
    return session_token


async def test_user_with_too_many_prompts_is_told_once(phone: Phone, api: ScriptedApi) -> None:
    """After ten prompts in ten minutes, this user gets one sentence and then no answer; each minute allows one more."""
    for _ in range(50):
        token = await open_new(phone)
    texts = [sent["text"] for sent in api.of("sendMessage")]
    assert len(texts) == PROMPTS.number + 1
    assert texts[-1] == EN.too_many
    assert (await phone.session(token)).opener_id is None
    await open_new(phone, 22)
    assert api.of("sendMessage")[-1]["chat_id"] == 22
    assert "reply_markup" in api.of("sendMessage")[-1]
    phone.clock.now += MINUTE
    await phone.handle(phone.message(f"/start {token}"))
    for _ in range(5):
        await open_new(phone)
    assert len(api.of("sendMessage")) == PROMPTS.number + 3
    assert (await phone.session(token)).opener_id == "11"


async def test_decisions_are_never_limited(phone: Phone) -> None:
    """A user who has had too many prompts can still cancel each of them."""
    tokens = [await open_new(phone) for _ in range(PROMPTS.number)]
    for _ in range(REPLIES.number * 2):
        await phone.handle(phone.message("hello"))
    for token in tokens:
        await phone.handle(phone.tap(f"x:{token}"))
        assert (await phone.session(token)).status == "cancelled"


async def test_prompt_that_could_not_be_sent_is_not_counted(phone: Phone, api: ScriptedApi) -> None:
    """An update that is repeated while the Bot API fails counts once, when it is answered."""
    session_token = await phone.create_session()
    update = phone.message(f"/start {session_token}")
    for _ in range(PROMPTS.number * 2):
        api.fail("sendMessage", Fault(502, "Bad Gateway"))
        assert await phone.handle(update) == "unanswered"
    assert await phone.handle(update) == "done"
    assert api.of("sendMessage")[-1]["text"] != EN.too_many
    for _ in range(PROMPTS.number - 1):
        await open_new(phone)
    assert EN.too_many not in [sent["text"] for sent in api.of("sendMessage")]


async def test_links_that_show_no_prompt_are_no_prompts(phone: Phone, api: ScriptedApi) -> None:
    """Unknown links count as other messages, not as prompts."""
    for number in range(REPLIES.number * 3):
        await phone.handle(phone.message(f"/start {number:043d}"))
    assert len(api.of("sendMessage")) == REPLIES.number
    await open_new(phone)
    assert "reply_markup" in api.of("sendMessage")[-1]


@pytest.mark.parametrize("text", ["hello", "/help", "/sessions", "/block", "/start", "/start x"])
async def test_talk_is_answered_so_often_only(text: str, phone: Phone, api: ScriptedApi) -> None:
    """The bot's answers are limited, however much a user writes."""
    for _ in range(100):
        await phone.handle(phone.message(text))
    assert len(api.of("sendMessage")) == REPLIES.number


async def test_the_count_is_of_the_user_over_all_bots(phone: Phone, bot: Bot, api: ScriptedApi) -> None:
    """All bots share one count for each user, because the limit protects the person."""
    react = Conversation(phone.signin, phone.signer, phone.clock, prompts=phone.signin.prompts).on_update
    intakes = [unmeasured_intake(bot, react, phone.storage.bots, phone.clock, bot_id=number) for number in range(2)]
    for number in range(REPLIES.number * 2):
        await intakes[number % 2].handle(phone.message("hello"))
    assert len(api.of("sendMessage")) == REPLIES.number

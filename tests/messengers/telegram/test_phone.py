"""The phone number is requested after Confirm, with a keyboard button; only the user's own contact counts."""

import pytest
from tests.messengers.telegram.conftest import (
    ACME,
    WHEN,
    HandClock,
    ScriptedApi,
    add_project,
    untagged,
)
from tests.messengers.telegram.phone_asking import (
    FORGERIES,
    KEYBOARD,
    NUMBER,
    OPTIONAL,
    REQUIRED,
    Asking,
    answering,
    keyboard_text,
)

from taproof.core.clock import MINUTE
from taproof.core.identity import MessengerIdentity
from taproof.messengers.texts.catalog import LANGUAGES
from taproof.storage.sqlite.store import SqliteStorage

EN = LANGUAGES["en"]
CONFIRMED = f"{EN.confirmed}\n\n{EN.confirmed_next}"
EXPIRED = f"{EN.expired}\n\n{EN.expired_next}"
GONE = {"remove_keyboard": True}
OTHER_BOT = 7_000_000_002


# ---- asking


async def test_confirm_asks_for_the_number(asking: Asking, api: ScriptedApi) -> None:
    """The prompt names the project and asks for the number, with Cancel; a second message has the one-time button."""
    session_token = await asking.begin()
    [edit] = api.of("editMessageText")
    labels = {"share": EN.phone.share_button, "cancel": EN.cancel_button}
    assert edit["text"] == EN.phone.prompt.format(project=ACME, **labels)
    assert [[each["callback_data"] for each in untagged(row)] for row in edit["reply_markup"]["inline_keyboard"]] == [
        [f"x:{session_token}"],
        [f"r:{session_token}"],
    ]
    keyboard = api.of("sendMessage")[-1]
    assert keyboard["text"] == EN.phone.keyboard.format(project=ACME)
    assert keyboard["reply_markup"] == KEYBOARD
    assert api.of("answerCallbackQuery")[-1]["text"] == EN.phone.notice


async def test_where_it_is_optional_the_user_may_go_on_without(asking: Asking, api: ScriptedApi) -> None:
    """The button "Continue without" confirms without a number, and is then removed."""
    session_token = await asking.begin(OPTIONAL)
    [row, _] = api.of("editMessageText")[-1]["reply_markup"]["inline_keyboard"]
    assert [each["callback_data"] for each in untagged(row)] == [f"w:{session_token}", f"x:{session_token}"]
    await asking.phone.handle(asking.phone.tap(f"w:{session_token}"))
    session = await asking.phone.session(session_token)
    assert session.identity == MessengerIdentity("11", "Ada Love", "ada")
    assert session.encrypted_phone is None
    assert api.of("editMessageText")[-1]["text"] == CONFIRMED.format(project=ACME, when=WHEN)
    assert (asking.texts()[-1], api.of("sendMessage")[-1]["reply_markup"]) == (EN.phone.over, GONE)


async def test_required_number_cannot_be_left_out(asking: Asking) -> None:
    """If a modified client taps a nonexistent "Continue without", the bot asks again."""
    session_token = await asking.begin()
    await asking.phone.handle(asking.phone.tap(f"w:{session_token}"))
    assert (await asking.phone.session(session_token)).status == "pending"
    assert asking.texts()[-1] == EN.phone.keyboard.format(project=ACME)


async def test_nothing_goes_on_without_confirm(asking: Asking) -> None:
    """Before Confirm, neither "Continue without" nor a contact confirms."""
    session_token = (await asking.phone.signin.create_session(OPTIONAL, public=True)).session_token
    await asking.phone.handle(asking.phone.message(f"/start {session_token}"))
    await asking.phone.handle(asking.phone.tap(f"w:{session_token}"))
    await asking.phone.handle(asking.contact())
    assert (await asking.phone.session(session_token)).status == "pending"
    assert await asking.number(session_token) is None
    assert asking.texts()[-1] == EN.phone.unasked


@pytest.mark.parametrize("act", ["x", "r"])
async def test_declining_cancels_and_takes_the_button_away(act: str, asking: Asking, api: ScriptedApi) -> None:
    """Cancel and "This wasn't me" end the sign-in here too, and a later contact does not change that."""
    session_token = await asking.begin()
    await asking.phone.handle(asking.phone.tap(f"{act}:{session_token}"))
    session = await asking.phone.session(session_token)
    assert (session.status, session.identity) == ("cancelled", None)
    assert (asking.texts()[-1], api.of("sendMessage")[-1]["reply_markup"]) == (EN.phone.over, GONE)
    await asking.phone.handle(asking.contact())
    assert (await asking.phone.session(session_token)) == session
    assert api.of("sendMessage")[-1]["reply_markup"] == GONE


async def test_opening_the_link_again_asks_again(asking: Asking, api: ScriptedApi) -> None:
    """A user who opens the link again gets the question and the button again, not a second Confirm."""
    session_token = await asking.begin()
    await asking.phone.handle(asking.phone.message(f"/start {session_token}"))
    question, keyboard = api.of("sendMessage")[-2:]
    assert EN.phone.share_button in question["text"]
    assert f"c:{session_token}" not in str(question)
    assert keyboard["reply_markup"] == KEYBOARD


async def test_the_number_goes_to_the_last_project_that_asked(asking: Asking, clock: HandClock) -> None:
    """Of two sign-ins that wait for a contact, the one that asked last gets it. Reopening its link also counts."""
    first, second = await asking.begin(REQUIRED), await asking.begin(OPTIONAL)
    clock.now += 1000
    await asking.phone.handle(asking.phone.message(f"/start {first}"))
    await asking.phone.handle(asking.contact())
    assert (await asking.number(first), await asking.number(second)) == (NUMBER, None)
    # Sent once more it is not for another project; that one asks for it when its link is opened again.
    await asking.phone.handle(asking.contact())
    assert (await asking.phone.session(second)).status == "pending"
    assert asking.texts()[-1] == CONFIRMED.format(project=ACME, when=WHEN)
    await asking.phone.handle(asking.phone.message(f"/start {second}"))
    await asking.phone.handle(asking.contact())
    assert await asking.number(second) == NUMBER


@pytest.mark.parametrize("act", ["x", "w", "r", "expires"])
async def test_a_number_that_was_declined_goes_to_nobody_else(act: str, asking: Asking, clock: HandClock) -> None:
    """Once the last sign-in is cancelled, confirmed without a number, reported or expired, earlier ones get nothing."""
    last = await asking.begin(OPTIONAL)
    clock.now += 9 * MINUTE
    earlier = await asking.begin(REQUIRED)
    clock.now += 1
    await asking.phone.handle(asking.phone.message(f"/start {last}"))
    if act == "expires":
        clock.now += MINUTE
    else:
        await asking.phone.handle(asking.phone.tap(f"{act}:{last}"))
    await asking.phone.handle(asking.contact())
    assert (await asking.phone.session(earlier)).status == "pending"
    assert (await asking.number(earlier), await asking.number(last)) == (None, None)


async def test_match_code_and_number_together(asking: Asking, storage: SqliteStorage, clock: HandClock) -> None:
    """The right number leads to the request for the contact; a wrong one cancels immediately, before or after that."""
    project_id = "proj_0000000000000000000009"
    await add_project(storage, clock(), "Both", project_id, developer_id="dev_pro", collect_phone=True, match_code=True)
    for wrong_after in (False, True):
        created = await asking.phone.signin.create_session(project_id, public=True)
        await asking.phone.handle(asking.phone.message(f"/start {created.session_token}"))
        [codes, *_] = asking.api.of("sendMessage")[-1]["reply_markup"]["inline_keyboard"]
        codes = untagged(codes)
        codes.sort(key=lambda each: each["text"] != created.match_code)
        await asking.phone.handle(asking.phone.tap(codes[0]["callback_data"]))
        assert asking.api.of("sendMessage")[-1]["reply_markup"] == KEYBOARD
        if wrong_after:
            await asking.phone.handle(asking.phone.tap(codes[1]["callback_data"]))
            assert asking.api.of("sendMessage")[-1]["reply_markup"] == GONE
        await asking.phone.handle(asking.contact())
        session = await asking.phone.session(created.session_token)
        assert session.status == ("cancelled" if wrong_after else "confirmed")


async def test_project_that_stops_asking_shows_its_prompt_again(
    asking: Asking, storage: SqliteStorage, api: ScriptedApi
) -> None:
    """If the plan ended in the meantime, "Continue without" leads back to Confirm, and no number is accepted."""
    session_token = await asking.begin(OPTIONAL)
    assert await storage.plans.update_plan("dev_pro", "free")
    await asking.phone.handle(asking.phone.tap(f"w:{session_token}"))
    assert f"c:{session_token}" in str(api.of("editMessageText")[-1]["reply_markup"])
    await asking.phone.handle(asking.phone.message("+4915123456789"))
    assert (await asking.phone.session(session_token)).status == "pending"
    await asking.phone.handle(asking.contact())
    assert (await asking.phone.session(session_token)).status == "confirmed"
    assert await asking.number(session_token) is None


# ---- giving


@pytest.mark.parametrize("number", ["4915123456789", "+4915123456789", "+49 151 23456789"])
async def test_own_contact_confirms(number: str, asking: Asking, api: ScriptedApi) -> None:
    """The number is kept in E.164 form and encrypted; the outcome takes the button away."""
    session_token = await asking.begin()
    await asking.phone.handle(asking.contact(number=number))
    session = await asking.phone.session(session_token)
    assert session.status == "confirmed"
    assert await asking.number(session_token) == NUMBER
    sent = api.of("sendMessage")[-1]
    assert (sent["text"], sent["reply_markup"]) == (CONFIRMED.format(project=ACME, when=WHEN), GONE)


async def test_contact_too_late(asking: Asking, clock: HandClock) -> None:
    """Exactly after ten minutes, a contact confirms nothing and is not stored."""
    session_token = await asking.begin()
    clock.now += 10 * MINUTE
    await asking.phone.handle(asking.contact())
    assert (await asking.phone.session(session_token)).identity is None
    assert await asking.number(session_token) is None
    assert asking.texts()[-1] == EXPIRED.format(project=ACME)


async def test_own_contact_that_is_no_number(asking: Asking) -> None:
    """The bot asks again if the contact has no valid phone number."""
    session_token = await asking.begin()
    for number in ("", "0", "+999999999999999999", "call me", "+49151234567890123456", "٤٩١٥١٢٣٤٥٦٧٨٩"):
        await asking.phone.handle(asking.contact(number=number))
        assert asking.texts()[-1].startswith(EN.phone.wrong.format(share=EN.phone.share_button))
    assert (await asking.phone.session(session_token)).status == "pending"


async def test_no_foreign_or_typed_contact_is_accepted(asking: Asking, *, soak: bool) -> None:
    """After every kind of foreign or typed contact is refused, the user's own is accepted."""
    other_bot = asking.phone.new_intake(bot_id=OTHER_BOT)
    sent = accepted = 0
    users = 50 if soak else 4
    for user in range(1001, 1001 + users):
        session_token = await asking.begin((REQUIRED, OPTIONAL)[user % 2], user)
        before = await asking.phone.session(session_token)
        for name, forge in FORGERIES.items():
            to_other = name == "own, through a bot" and user % 2
            update = asking.contact(user, user) if to_other else forge(asking, user)
            assert await (other_bot if to_other else asking.intake).handle(update) == "done"
            sent += 1
            accepted += await asking.phone.session(session_token) != before
        await asking.phone.handle(asking.contact(user, user))
        assert await asking.number(session_token) == NUMBER
    print(f"{accepted} of {sent} contacts that were not the user's own were accepted")  # noqa: T201 — as asked for.
    assert accepted == 0
    assert sent == users * len(FORGERIES)


@pytest.mark.parametrize("kind", ["another user's", "nobody's", "own, forwarded", "own, through a bot", "typed"])
async def test_what_is_not_accepted_is_answered_kindly(kind: str, asking: Asking, api: ScriptedApi) -> None:
    """The answer asks the user to use the button, and shows the button again."""
    await asking.begin()
    await asking.phone.handle(FORGERIES[kind](asking, 11))
    sent = api.of("sendMessage")[-1]
    wrong = EN.phone.wrong.format(share=EN.phone.share_button)
    assert sent["text"] == f"{wrong}\n\n{EN.phone.keyboard.format(project=ACME)}"
    assert sent["reply_markup"] == KEYBOARD


async def test_the_button_counts_in_every_app(asking: Asking, api: ScriptedApi) -> None:
    """The contact counts as a reply to the message with the button, the first or a later one.

    Some apps send it without a reply, which also counts.

    It also counts without a reply in a topic, or if the messenger no longer has that message.
    """
    wrong = EN.phone.wrong.format(share=EN.phone.share_button)
    for user, more in enumerate(
        (
            {},
            answering(keyboard_text(), 102),
            answering(f"{wrong}\n\n{keyboard_text()}", 103),
            {"reply_to_message": {"message_id": 4, "chat": {"id": 104, "type": "private"}, "date": 0}},
            {"reply_to_message": {"message_id": 4, "date": 1, "forum_topic_created": {"name": "Sign-ins"}}},
        ),
        start=101,
    ):
        session_token = await asking.begin(REQUIRED, user)
        await asking.phone.handle(asking.contact(user, user, **more))
        assert await asking.number(session_token) == NUMBER
    assert api.of("sendMessage")[-1]["reply_markup"] == GONE


async def test_help_is_help_while_a_contact_is_asked_for(asking: Asking) -> None:
    """A command is not treated as a typed number."""
    await asking.begin()
    await asking.phone.handle(asking.phone.message("/help"))
    assert asking.texts()[-1].startswith(EN.help)

"""The bot's answer to a report."""

import pytest
from tests.messengers.telegram.conftest import ACME, PROJECT_ID

from taproof.messengers.telegram.user_control_replies import reported_reply
from taproof.messengers.texts.catalog import LANGUAGES
from taproof.service.sessions.seen import SeenSession


@pytest.mark.parametrize("language", LANGUAGES)
def test_report_of_a_developers_own_sign_in_says_what_it_ended(language: str) -> None:
    """Nobody is still signed in to the service then; the button ends the block of its project."""
    texts = LANGUAGES[language].control
    seen = SeenSession("reported", "Acme & Söhne <shop>", project_id=PROJECT_ID, signed_out=True)
    shown = reported_reply(texts, seen)
    assert shown.text == texts.reported_developer.format(project=ACME, unblock=texts.unblock_button)
    assert shown.buttons is not None
    [[button]] = shown.buttons.inline_keyboard
    assert (button.text, button.callback_data) == (texts.unblock_button, f"u:{PROJECT_ID}")

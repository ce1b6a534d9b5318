"""docs/how-to/for-your-users.md shows the texts that the bot really sends."""

import html
import re

from tests.docs.blocks import DOCS, block_of

from taproof.core.request_context import RequestContext
from taproof.messengers.browsers import Browser
from taproof.messengers.telegram.prompts import opened_reply
from taproof.messengers.texts.catalog import LANGUAGES
from taproof.service.console.sign_in import CONSOLE, INVITATION, TERMINAL
from taproof.service.sessions.seen import SeenSession

PAGE = "how-to/for-your-users.md"
EN = LANGUAGES["en"]
CONTEXT = RequestContext(domain="shop.example.com", user_agent="", place="Berlin, Germany")


def prompt(choices: tuple[str, ...] = ()) -> tuple[str, list[str]]:
    """Return the visible text of a prompt, and the labels of its buttons."""
    seen = SeenSession("opened", "Acme Shop", context=CONTEXT, choices=choices)
    reply = opened_reply(EN, seen, "A" * 43, 0, Browser("Firefox", "Linux"))
    text = html.unescape(re.sub(r"<[^>]+>|[\u2066-\u2069]", "", reply.text))
    assert reply.buttons is not None
    return text, [button.text for row in reply.buttons.inline_keyboard for button in row]


def test_the_prompt() -> None:
    """The page shows the prompt word for word, and names each of its buttons."""
    text, labels = prompt()
    assert block_of(PAGE, "text", "Sign in to").text == f"{text}\n"
    page = (DOCS / PAGE).read_text(encoding="utf-8")
    assert labels
    for label in labels:
        assert f"**{label}**" in page


def test_the_sentence_about_the_number() -> None:
    """The page has the sentence that match codes add to the prompt."""
    sentence = block_of(PAGE, "text", "Choose the number").text.strip()
    assert sentence in prompt(("17", "42", "88"))[0]
    assert sentence not in prompt()[0]


def test_the_page_of_the_console_names_its_own_prompts() -> None:
    """The page shows the console's own prompts word for word, so that a developer can compare them."""
    page = " ".join((DOCS / "how-to/console.md").read_text(encoding="utf-8").split())
    names = [purpose.project_name for purpose in (CONSOLE, TERMINAL, INVITATION)]
    assert [name for name in names if f"*{name}*" not in page] == []


def test_what_comes_after_the_prompt() -> None:
    """The page has the bot's words for a request that the application cancelled, and its button back."""
    sentence = block_of(PAGE, "text", "cancelled this request").text.strip()
    assert sentence == EN.withdrawn.partition("\n")[0].format(project="Acme Shop")
    assert f"**{EN.back_button.format(project='Acme Shop')}**" in (DOCS / PAGE).read_text(encoding="utf-8")

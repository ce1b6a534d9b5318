"""The origin of a request in the prompt: a stranger's text cannot leave its place or imitate the bot's words."""

import re

import pytest
from tests.messengers.telegram.conftest import Phone, ScriptedApi
from tests.messengers.telegram.test_prompts import HOSTILE_NAMES
from tests.whole_sign_in import WholeSignIn

from taproof.core.encryption import Encryptor
from taproof.core.entropy import system_entropy
from taproof.core.request_context import RequestContext, Requester
from taproof.messengers.browsers import Browser, name_browser
from taproof.messengers.telegram.prompts import opened_reply
from taproof.messengers.texts.catalog import LANGUAGES
from taproof.service.sessions.seen import SeenSession

EN = LANGUAGES["en"]
TOKEN = "A" * 43
CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"
)
MAC = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5"
    " Safari/605.1.15"
)
GALAXY = (
    "Mozilla/5.0 (Linux; Android 14; SM-S911B) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/25.0"
    " Chrome/121.0.0.0 Mobile Safari/537.36"
)
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5"
    " Mobile/15E148 Safari/604.1"
)


def prompt(context: RequestContext, browser: Browser = Browser(), language: str = "en") -> str:  # noqa: B008
    seen = SeenSession("opened", "Shop", context=context)
    return opened_reply(LANGUAGES[language], seen, TOKEN, 0, browser).text


async def test_prompt_tells_page_browser_and_place(phone: Phone, api: ScriptedApi, encryptor: Encryptor) -> None:
    """Each known detail of the request is on its own line of the prompt, above the age."""
    signin = WholeSignIn(
        phone.storage,
        encryptor,
        lambda: "https://t.me/b",
        phone.clock,
        system_entropy,
        find_place=lambda address: {"203.0.113.9": "Berlin, Germany"}[address],
    )
    requester = Requester("https://shop.example.com", CHROME, "203.0.113.9")
    created = await signin.create_session("proj_0000000000000000000001", public=True, requester=requester)
    await phone.handle(phone.message(f"/start {created.session_token}"))
    [sent] = api.of("sendMessage")
    plain = re.sub("</?code>|[\u2068\u2069]", "", sent["text"])
    assert (
        "\n\nPage: shop.example.com\nBrowser: Chrome on Windows\nApproximate place: Berlin, Germany\n"
        "Requested: just now.\n\n"
    ) in plain


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_hidden_page_has_a_line(language: str) -> None:
    """The line uses each language's own words, which no domain can imitate, because domains are in another type."""
    context = LANGUAGES[language].context
    line = context.page_line.format(page=f"\u2068{context.page_not_told}\u2069")
    assert f"\n{line}\n" in prompt(RequestContext(hides_page=True), language=language)
    assert line not in prompt(RequestContext("a.example"), language=language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_not_known_leaves_no_line(language: str) -> None:
    """If the project shows nothing, or nothing is known of the caller, the prompt has no additional lines."""
    texts = LANGUAGES[language]
    for line in (texts.context.page_line, texts.context.browser_line, texts.context.place_line):
        assert line.partition("{")[0] not in prompt(RequestContext(), language=language)
    assert "\n\n\n" not in prompt(RequestContext("a.example"), language=language)


def test_nothing_breaks_out(subtests: pytest.Subtests) -> None:
    """Domain and place stay inside their own `<code>` and isolate, on one line, where clients make no links."""
    for hostile in HOSTILE_NAMES:
        for language in LANGUAGES:
            with subtests.test(language=language, hostile=hostile):
                text = prompt(RequestContext(hostile, "", hostile), language=language)
                found = re.findall(r"<code>(.*?)</code>", text)
                assert len(found) == text.count("<code>") == text.count("</code>") == 3
                for part in found:
                    assert re.fullmatch(r"\u2068[^<>\n\u2066-\u2069\u202a-\u202e]+\u2069", part)
                assert not set("<>") & set(re.sub("</?code>", "", text))


def test_of_a_long_domain_the_end_is_shown() -> None:
    """The end of a domain names its owner, so a long beginning such as `accounts.bank.example` must not hide it."""
    domain = "accounts.bank.example." + "x" * 180 + ".evil.example"
    text = prompt(RequestContext(domain))
    assert ".evil.example\u2069" in text
    assert "bank.example." not in text


@pytest.mark.parametrize(
    ("user_agent", "browser"),
    [
        (CHROME, Browser("Chrome", "Windows")),
        (IPHONE, Browser("Safari", "iOS")),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0", Browser("Firefox", "Linux")),
        (CHROME + " Edg/126.0.0.0", Browser("Edge", "Windows")),
        (MAC, Browser("Safari", "macOS")),
        (GALAXY, Browser("Samsung Internet", "Android")),
        ("curl/8.5.0", Browser("curl", "")),
        ("taproof-login/0.1.0 (Linux)", Browser("taproof login", "Linux")),
        ("taproof-login/0.1.0 (Macintosh; Intel Mac OS X 10_15_7)", Browser("taproof login", "macOS")),
        ("python-requests/2.32.0", Browser("Python Requests", "")),
        ("", Browser()),
        ("ButtonTap Confirm bot", Browser()),
        ("Your Bank verified bot/1.0", Browser()),
        ("<b>x</b>\u202e t.me/evil", Browser()),
        ("(" * 100_000, Browser()),
    ],
)
async def test_browser_is_one_of_the_known_names_or_none(user_agent: str, browser: Browser) -> None:
    """The prompt never shows the sender's own text, only a name from the tables."""
    assert await name_browser(user_agent) == browser


@pytest.mark.parametrize("language", LANGUAGES)
def test_browser_line(language: str) -> None:
    """The browser is shown with and without a system, in each language."""
    assert "\u2068Chrome\u2069" in prompt(RequestContext(), Browser("Chrome"), language)
    both = prompt(RequestContext(), Browser("Chrome", "Windows"), language)
    assert LANGUAGES[language].context.browser_on.format(browser="Chrome", system="Windows") in both

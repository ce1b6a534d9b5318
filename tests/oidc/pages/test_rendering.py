"""The pages have the right content, escape foreign text, and are sent with strict headers."""

import re
from html.parser import HTMLParser
from typing import get_args

import pytest
from tests.core.logos import PNG
from tests.oidc.pages.views import DEEPLINK, EACH, PAGES, REDIRECT_URI, a_view

from taproof.core.brand import Brand, Logo
from taproof.http.qr_code import qr_code_file
from taproof.oidc.pages.rendering import Pages, SignInState
from taproof.oidc.pages.texts.catalog import LANGUAGES

HOSTILE = "<script>alert(1)</script>{{ 7*7 }}{project}%s\" onload='x' \u202egnp.\u2066evil\n&amp;"
SHOWN = "<script>alert(1)</script>{{ 7*7 }}{project}%s\" onload='x' gnp.evil &amp;"


class Page(HTMLParser):
    """A page's elements and its text."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.isolated: list[str] = []
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._open and self._open[-1] == "bdi":
            self.isolated.append(data)

    def all(self, tag: str, **attributes: str) -> list[dict[str, str | None]]:
        return [found for name, found in self.elements if name == tag and attributes.items() <= found.items()]


def test_each_page_in_each_language(subtests: pytest.Subtests) -> None:
    """Each page has its language and direction, a title, one heading, one main landmark, and nothing inline."""
    for language, texts in LANGUAGES.items():
        for name, render in EACH.items():
            with subtests.test(page=name, language=language):
                page = Page(render(language))
                assert page.elements[0] == ("html", {"lang": language, "dir": texts.direction})
                assert [len(page.all(tag)) for tag in ("h1", "main", "title")] == [1, 1, 1]
                assert all(script.get("src") for script in page.all("script"))
                assert not page.all("style")
                assert not [each for each in page.elements if "style" in each[1] or any(k[:2] == "on" for k in each[1])]
                for each in (*page.all("script"), *page.all("link")):
                    path = each.get("src") or each.get("href") or ""
                    assert re.fullmatch(r"/oidc/static/[a-z_]+\.(css|js|svg)\?[0-9a-f]{12}", path)
                    assert Pages.static_file(path.rpartition("/")[2].partition("?")[0]) is not None


def test_names_are_only_text() -> None:
    """A hostile name is escaped, isolated, without control characters, and never a placeholder or a template."""
    pages = {
        "sign-in": PAGES.sign_in(a_view(project_name=HOSTILE, client_name=HOSTILE + "2"), "ar"),
        "confirm": PAGES.device_confirm("fa", HOSTILE, HOSTILE, HOSTILE + "2"),
    }
    for render in pages.values():
        page = Page(render)
        assert page.isolated.count(SHOWN) == 1
        assert SHOWN + "2" in page.isolated
        assert f"\u2068{SHOWN}\u2069" in page.text  # The title.
        assert b"<script>alert" not in render
        assert b"onload='" not in render
    problem, form = PAGES.problem("request", HOSTILE, "en"), PAGES.device_code("en", HOSTILE)
    assert HOSTILE in Page(problem).text
    assert [each["value"] for each in Page(form).all("input")] == [HOSTILE]
    assert b"<script>alert" not in problem + form


def test_controls_of_each_state() -> None:
    """The page of a state has the forms that can be used in it, and reloads itself only while the user can decide."""
    base = "/oidc/authorize/auth_1"
    again, leave = f"{base}/start-again", f"{base}/leave"
    expected = {
        "waiting": ([leave], True, True),
        "returning": ([leave], True, False),
        "same device": ([leave], True, False),
        "cancelled": ([], False, False),
        "expired": ([again, leave], False, False),
        "finished": ([], False, False),
        "device_done": ([], False, False),
        "unavailable": ([again, leave], False, False),
        "blocked": ([again, leave], True, False),
    }
    found = {}
    for name in expected:
        page = Page(EACH[name]("en"))
        status = page.all("p", id="status")
        refresh = page.all("meta", **{"http-equiv": "refresh"})
        drawn = page.all("noscript", id="qr-code")
        scripts = len(page.all("noscript")) - len(drawn) - len(page.all("noscript", id="stuck-open"))
        assert len(refresh) == scripts == len(status) == len(page.all("a", href=DEEPLINK))
        assert [each["data-status-url"] for each in status] == [f"{base}/status"] * len(status)
        forms = [each["action"] for each in page.all("form", method="post")]
        found[name] = (forms, bool(status), bool(drawn))
    assert found == expected
    assert '<noscript><meta http-equiv="refresh" content="3"></noscript>' in EACH["waiting"]("en").decode()
    for state in get_args(SignInState):
        page = Page(PAGES.sign_in(a_view(state, can_start_again=False, application_url=False), "en"))
        assert page.all("form") == []
        assert "Grafana" in page.text


def test_waiting_shows_the_link_and_the_time() -> None:
    """The QR code is that of the deeplink, the match code is shown if there is one, and minutes are rounded up."""
    page = Page(PAGES.sign_in(a_view(match_code="42"), "en"))
    drawn = page.all("noscript", id="qr-code")[0]
    assert (drawn["data-link"], drawn["data-label"]) == (DEEPLINK, "QR code of the link to the messenger")
    assert page.all("img", alt=drawn["data-label"] or "")[0]["src"] == "/oidc/authorize/auth_1/qr.svg"
    assert "Tap this number in the messenger: 42" in page.text
    assert "Tap this number" not in Page(EACH["waiting"]("en")).text
    shown = {599: "10 min", 60: "1 min", 61: "2 min", 1: "1 min", 0: "0 min", -5: "0 min"}
    for seconds, minutes in shown.items():
        page = Page(PAGES.sign_in(a_view(seconds_left=seconds), "en"))
        assert f"Time left: {minutes}" in page.text
        assert page.all("bdi", id="time-left")[0]["data-seconds-left"] == str(max(seconds, 0))


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_command_for_apps_that_lose_the_link(language: str) -> None:
    """The waiting page shows the command to send to the bot, with and without scripts, until the link is open."""
    command = f"/start {DEEPLINK.rpartition('?start=')[2]}"
    waiting = LANGUAGES[language].waiting
    page = Page(PAGES.sign_in(a_view(), language))
    assert [page.text.count(each) for each in (command, waiting.stuck, waiting.send)] == [2, 2, 2]
    assert page.text.count(waiting.copy_button) == 1
    for view in (a_view(hint="opened"), a_view("cancelled"), a_view("returning")):
        assert "/start" not in Page(PAGES.sign_in(view, language)).text


def test_the_projects_button_label() -> None:
    """The label replaces the default in its language, as text only, and no other words of the page."""
    texts = {"default": {"button_label": "<b>Enter</b>", "confirmed": "No"}, "es": {"button_label": "Entrar"}}
    labels = {"ru": "<b>Enter</b>", "es": "Entrar"}
    for language, label in labels.items():
        usual, own = (Page(PAGES.sign_in(a_view(texts=each), language)) for each in ({}, texts))
        assert own.text == usual.text.replace(LANGUAGES[language].waiting.open_button, label)
        assert label in own.isolated
        assert own.all("b") == []


def test_a_link_to_this_machine_has_no_code() -> None:
    """A phone cannot open the sandbox's link, so there is nothing to scan."""
    for link, is_drawn in (
        ("http://127.0.0.1:4711/sandbox/phone?start=x", False),
        ("http://shop.localhost:4711/sandbox/phone?start=x", False),
        ("http://192.0.2.7:4711/sandbox/phone?start=x", True),
    ):
        page = Page(PAGES.sign_in(a_view(deeplink=link), "en"))
        assert bool(page.all("noscript", id="qr-code")) is is_drawn, link
        assert ("Scan this code" in page.text) is is_drawn, link


def test_hints_are_shown() -> None:
    """The status line shows what the sign-in waits for, and the script knows the shown hint and state."""
    expected = {
        "waiting": ("waiting", "waiting", "Waiting for you to confirm…"),
        "opened": ("waiting", "opened", "Opened in the messenger: confirm there."),
        "choosing": ("waiting", "choosing", "Opened in the messenger: tap 42 there."),
        "phone_asked": ("waiting", "phone_asked", "The messenger asks for your phone number: share it there."),
        "returning": ("returning", "return", "Waiting for you to come back…"),
        "blocked": ("unreachable", "unreachable", "You have blocked the bot in the messenger"),
    }
    views = {"returning": a_view("returning", hint="return")}
    for name, (state, hint, text) in expected.items():
        page = Page(PAGES.sign_in(views[name], "en") if name in views else EACH[name]("en"))
        hidden = [each.get("class") for each in page.all("p") if "data-asks" in each and "hidden" in each]
        assert hidden == (["lead", "match"] if name == "phone_asked" else [])
        assert ("Waiting for you to confirm…" in page.text) == (name == "waiting")
        status = page.all("p", id="status")[0]
        assert (status["data-seen"], status["data-hint"]) == (state, hint)
        assert text in page.text
    returning = Page(EACH["returning"]("en"))
    assert "tap “Back to Ada’s Bookshop” in the messenger" in returning.text
    # A second "Back to" would do the opposite of the messenger's.
    assert (returning.text.count("Back to"), "Cancel this sign-in" in returning.text) == (1, True)


def test_a_sign_in_on_the_same_device() -> None:
    """If the sign-in must end in this browser, there is no QR code to scan with another device."""
    page = Page(EACH["same device"]("en"))
    assert "Only this browser can finish the sign-in." in page.text
    assert "Scan this code" not in page.text
    assert not [script for script in page.all("script") if "qr_code" in (script["src"] or "")]
    assert "Only this browser" not in Page(EACH["waiting"]("en")).text


def test_the_pages_to_which_the_messenger_leads() -> None:
    """The right browser sends the code with a form; another one shows what to do, also without scripts."""
    page = Page(EACH["back in the browser"]("en"))
    assert [each["action"] for each in page.all("form", method="post")] == ["/oidc/authorize/auth_1/return"]
    assert [(each["name"], each["value"]) for each in page.all("input", type="hidden")] == [("return_code", "")]
    assert "Your browser blocks scripts" in page.text
    elsewhere = Page(EACH["elsewhere"]("en"))
    assert elsewhere.all("form") == []
    for sentence in ("in another browser", "address bar of this browser", "Never send this address to anybody"):
        assert sentence in elsewhere.text


def test_a_drawn_link_can_be_read() -> None:
    """The drawing for browsers without scripts is an SVG file, and a scanner reads the link."""
    drawing = qr_code_file(DEEPLINK)
    assert drawing.startswith(b'<svg xmlns="http://www.w3.org/2000/svg"')
    assert decoded(modules(Page(drawing).all("path", stroke="#000")[0]["d"] or "")) == DEEPLINK


def modules(path: str) -> set[tuple[int, int]]:
    """Return the dark modules of segno's drawing: horizontal strokes one unit wide, with a margin of four modules."""
    dark, x, y = set(), 0, 0
    for command, first, second in re.findall(r"([Mmh])(-?[\d.]+)(?: (-?[\d.]+))?", path):
        if command == "h":
            dark |= {(column - 4, y - 4) for column in range(x, x + int(first))}
            x += int(first)
        else:
            x, y = x + int(first), y + int(float(second))
    return dark


def decoded(dark: set[tuple[int, int]]) -> str:
    """Read a code of version 4, level L, mask 0, in bytes (ISO/IEC 18004): one block of 33 × 33 modules."""
    size = max(x for x, _ in dark) + 1
    assert size == 33

    def is_data(x: int, y: int) -> bool:
        finder = (x < 9 and y < 9) or (x < 9 and y >= size - 8) or (x >= size - 8 and y < 9)
        return not (finder or 6 in (x, y) or (24 <= x <= 28 and 24 <= y <= 28))

    columns = [*range(size - 1, 6, -2), 5, 3, 1]
    bits = [
        ((x, y) in dark) ^ ((x + y) % 2 == 0)
        for place, right in enumerate(columns)
        for y in (range(size) if place % 2 else range(size - 1, -1, -1))
        for x in (right, right - 1)
        if is_data(x, y)
    ]
    number = int("".join("01"[bit] for bit in bits), 2)
    mode_and_length = number >> (len(bits) - 12)
    assert mode_and_length >> 8 == 0b0100
    length = mode_and_length & 0xFF
    return (number >> (len(bits) - 12 - 8 * length) & (1 << 8 * length) - 1).to_bytes(length).decode()


def test_form_post_keeps_the_values() -> None:
    """The application gets exactly the values that it is sent, whatever characters they contain."""
    fields = {"code": "c&d=\"'", "state": "<s> \u202e ü\n+%20", "iss": "https://id.example"}
    page = Page(PAGES.form_post(REDIRECT_URI + "?a=1&b=2", fields, "en"))
    assert [each["action"] for each in page.all("form", method="post")] == [REDIRECT_URI + "?a=1&b=2"]
    assert {each["name"]: each["value"] for each in page.all("input", type="hidden")} == fields
    assert page.all("button") == [{}]


def test_the_code_is_easy_to_type() -> None:
    """The field has no completion and no lowercase; a screen reader reads the error together with it."""
    field = Page(PAGES.device_code("en", "wdjb", "unknown")).all("input")[0]
    assert (field["autocomplete"], field["autocapitalize"], field["inputmode"]) == ("off", "characters", "text")
    page = Page(PAGES.device_code("en", "wdjb", "unknown"))
    assert [page.all("p", id=name) != [] for name in (field["aria-describedby"] or "").split()] == [True, True]
    actions = [each.get("value") for each in Page(EACH["device confirm"]("en")).all("button", name="action")]
    assert actions == ["continue", "cancel"]


def test_headers() -> None:
    """Only the pages' own resources may run, load or frame; only forms of pages that leave may lead elsewhere."""
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "{}base-uri 'none'; frame-ancestors 'none'"
    )
    for leaves, form_action in ((False, "form-action 'self'; "), (True, "")):
        headers = dict(Pages.headers(leaves=leaves))
        assert headers[b"content-security-policy"].decode() == policy.format(form_action)
        assert headers[b"x-frame-options"] == b"DENY"
        assert headers[b"referrer-policy"] == b"same-origin"
        assert headers[b"x-content-type-options"] == b"nosniff"
        assert headers[b"cache-control"] == b"no-store"


def test_the_operators_brand() -> None:
    """Each page shows the name as text and the logo below; without a brand, there is neither."""
    branded = Pages(Brand("Acme <b>", Logo(PNG, "image/png")))
    page = Page(branded.device_code("fa"))
    assert "Acme <b>" in page.isolated
    [icon] = page.all("link", rel="icon")
    assert (icon["href"] or "").startswith("/oidc/static/logo?")
    assert [each["src"] for each in page.all("img")] == [icon["href"]]
    named = Page(Pages(Brand("Acme")).device_code("en"))
    assert (named.all("img"), "Acme" in named.text) == ([], True)
    assert (Page(PAGES.device_code("en")).all("footer"), PAGES.device_code("en").count(b"Taproof")) == ([], 0)


def test_logos() -> None:
    """Three pages show the logo.

    The policy allows only its origin; a stored URL without an origin does not extend the policy.
    """
    logo = 'https://cdn.shop.example/a.png?"><script>'
    pages = (
        PAGES.sign_in(a_view(logo_url=logo), "en"),
        PAGES.back_in_browser("auth_1", "Shop", "en", logo_url=logo),
        PAGES.device_confirm("en", "WDJB-MJHT", "Shop", "TV", logo_url=logo),
    )
    shown = {"class": "logo", "src": logo, "alt": "", "referrerpolicy": "no-referrer"}
    assert [Page(page).all("img", **{"class": "logo"}) for page in pages] == [[shown]] * 3
    assert Page(EACH["waiting"]("en")).all("img", **{"class": "logo"}) == []
    sources = {logo: " https://cdn.shop.example", "https://a b/; script-src *": "", "": ""}
    for url, source in sources.items():
        policy = dict(Pages.headers(logo_url=url))[b"content-security-policy"].decode()
        assert f"; img-src 'self'{source}; connect-src" in policy


def test_static_files() -> None:
    """Only the files of the folder are served, each with its type."""
    types = {"oidc.css": "text/css", "sign_in.js": "text/javascript", "form_post.js": "text/javascript"}
    types |= dict.fromkeys(("qr_code.js", "return.js", "elsewhere.js"), "text/javascript")
    for name, content_type in (types | {"icon.svg": "image/svg+xml"}).items():
        found = Pages.static_file(name)
        assert found is not None
        assert found[1].startswith(content_type)
    assert [Pages.static_file(name) for name in ("", ".", "../rendering.py", "oidc.css?1", "OIDC.css")] == [None] * 5

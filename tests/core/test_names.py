"""Names that other people choose cannot imitate other text."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taproof.core.names import isolated_name, name_problem, stored_text, visible_name

GOOD = [
    "A",
    "Acme & Söhne <shop>",
    "Кафе «Мир»",
    "مقهى السلام",
    "בית קפה",
    "喫茶店",
    "می\u200cخواهم",  # Persian needs its zero-width non-joiner.
    "👩\u200d💻 Studio",
    "❤\ufe0f",
    "a" * 100,
    "👍🏽" * 50,
]

CONTROLS = ["\0", "\x01", "\n", "\r", "\t", "\x1b", "\x7f", "\x85", "\u2028", "\u2029", "\ud800", "\udfff"]

BIDI = ["\u061c", "\u200e", "\u200f", *map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))]
ZERO_WIDTH = ["\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u180e", "\U000e0041"]
BLANK_LETTERS = ["\u3164", "\u2800", "\u115f", "\u1160", "\uffa0"]
BLANK_MARKS = ["\u034f", "\u17b4", "\u17b5", "\ufe0e", "\ufe0f"]
RARE_SELECTORS = ["\ufe00", "\u180b", "\U000e0100"]


@pytest.mark.parametrize("name", GOOD)
def test_names_of_the_world_are_accepted(name: str) -> None:
    """Names in every script, and emoji and punctuation of real people's and shops' names, are accepted."""
    assert name_problem(name) is None


@pytest.mark.parametrize("name", ["", "a" * 101, "x" * 1_000_000])
def test_names_have_one_to_a_hundred_characters(name: str) -> None:
    """A name has one to a hundred characters (contract.md, Developer endpoints)."""
    assert name_problem(name) == "must have 1 to 100 characters"


@pytest.mark.parametrize("control", CONTROLS)
def test_control_characters_and_surrogates_are_refused(control: str) -> None:
    """They could break a log line, a header, a prompt or the store."""
    assert name_problem(f"Ac{control}me") == "must not contain control characters or line breaks"


def test_a_name_of_only_invisible_characters_is_refused(subtests: pytest.Subtests) -> None:
    """A prompt without a visible name could be from any project."""
    for invisible in [*BIDI, *ZERO_WIDTH, *BLANK_LETTERS, *BLANK_MARKS, *RARE_SELECTORS]:
        with subtests.test(invisible=invisible):
            for name in (invisible, invisible * 7, f"{invisible} {invisible}"):
                assert name_problem(name) == "must contain a visible character"


@pytest.mark.parametrize("control", BIDI)
def test_direction_controls_are_not_shown(control: str) -> None:
    """A name cannot change its reading by reversing a part of itself."""
    assert visible_name(f"Ba{control}nk{control}") == "Bank"
    assert isolated_name(f"{control}Bank") == "\u2068Bank\u2069"


@pytest.mark.parametrize("character", [*CONTROLS, "\u200b", "\u2060", "\ufeff", "\u00ad"])
def test_controls_and_zero_width_spaces_are_not_shown(character: str) -> None:
    """A shown name has one line and no hidden parts, even if an older release stored it."""
    assert visible_name(f"Ba{character}nk") in {"Bank", "Ba nk"}
    assert visible_name(f"{character}Bank{character}") == "Bank"


def test_joined_emoji_and_persian_words_stay_whole() -> None:
    """Joiners are kept between characters and removed at the ends."""
    assert visible_name("👩\u200d💻") == "👩\u200d💻"
    assert visible_name("می\u200cخواهم") == "می\u200cخواهم"
    assert visible_name("\u200dA\u200d\u200c") == "A"


def test_white_space_becomes_single_spaces() -> None:
    """Padding cannot push the end of a prompt out of sight."""
    assert visible_name(" a\u3000\u3000 b\u00a0\n\nc ") == "a b c"


@given(st.text())
def test_every_shown_name_is_safe(text: str) -> None:
    """For any text: one line, no controls, no unbalanced isolates, and showing it twice changes nothing."""
    shown = visible_name(text)
    dangerous = {"Cc", "Cs", "Zl", "Zp", "Co", "Cn"}
    assert not any(unicodedata.category(character) in dangerous for character in shown)
    assert not set(shown) & set(BIDI)
    assert shown == shown.strip()
    assert visible_name(shown) == shown
    isolated = isolated_name(text)
    assert (isolated[0], isolated[-1]) == ("\u2068", "\u2069")
    assert isolated[1:-1] == shown


@given(st.text())
def test_an_accepted_name_shows_something(text: str) -> None:
    """Each name that `name_problem` accepts is visible in the prompt and can be stored as UTF-8."""
    name = text.strip()
    if name_problem(name) is None:
        assert visible_name(name)
        assert name.encode()


@given(st.text())
def test_stored_text_can_always_be_stored(text: str) -> None:
    """NUL and lone surrogates are removed; the rest stays as the messenger sent it."""
    kept = stored_text(text)
    assert kept.encode().decode() == kept
    assert "\0" not in kept
    assert kept == text or "\0" in text or any("\ud800" <= character <= "\udfff" for character in text)

"""Parsing of Telegram's HTML, tag by tag."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taproof.sandbox.telegram.html import EntitiesInvalid, FormattedText, parse_html, trim, utf16_length

LONE_SURROGATE = (
    "Text contains invalid Unicode characters after decoding HTML entities, check for unmatched surrogate code units"
)


def entity(kind: str, offset: int, length: int, **more: Any) -> dict[str, Any]:
    return {"type": kind, "offset": offset, "length": length} | more


@pytest.mark.parametrize(
    ("source", "text", "entities"),
    [
        ("plain", "plain", []),
        ("<b>a</b><STRONG>b</STRONG>", "ab", [entity("bold", 0, 1), entity("bold", 1, 1)]),
        ("<b>a<i>b</i></b>", "ab", [entity("bold", 0, 2), entity("italic", 1, 1)]),
        ("😀<u>x</u>", "😀x", [entity("underline", 2, 1)]),
        ("<s>😀</s>", "😀", [entity("strikethrough", 0, 2)]),
        ("a<b></b>b", "ab", []),
        ("&lt;&amp;&gt;&quot;&#39;&#x1F600;", "<&>\"'😀", []),
        ("&nbsp; &apos; & &#0; &#99999999999;", "&nbsp; &apos; & &#0; &#99999999999;", []),
        ("&lt b", "< b", []),
        ("1 > 0", "1 > 0", []),
        (
            '<a href="https://a.example?b=1&amp;c">l</a>',
            "l",
            [entity("text_link", 0, 1, url="https://a.example/?b=1&c")],
        ),
        ("<a href='a.example'>l</a>", "l", [entity("text_link", 0, 1, url="http://a.example/")]),
        ("<a>a.example</a>", "a.example", [entity("text_link", 0, 9, url="http://a.example/")]),
        ('<a href="javascript:alert(1)">l</a>', "l", []),
        ('<span class="tg-spoiler">x</span>', "x", [entity("spoiler", 0, 1)]),
        ("<span class=tg-spoiler>x</span>", "x", [entity("spoiler", 0, 1)]),
        ('<pre><code class="language-py">x</code></pre>', "x", [entity("pre", 0, 1, language="py")]),
        ("<pre>x</pre><code>y</code>", "xy", [entity("pre", 0, 1), entity("code", 1, 1)]),
        ("<blockquote expandable>x</blockquote>", "x", [entity("expandable_blockquote", 0, 1)]),
        ("<b>a</>", "a", [entity("bold", 0, 1)]),
        ("<b >a</b >", "a", [entity("bold", 0, 1)]),
        ("a\r\nb\u202ec\x07", "a\nbc ", []),
    ],
)
def test_parse_html(source: str, text: str, entities: list[dict[str, Any]]) -> None:
    """Tags become entities that count UTF-16 units; only four named references exist; the rest stays as written."""
    assert parse_html(source) == (text, entities)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("<b>x", 'Can\'t find end tag corresponding to start tag "b"'),
        ("я<x>y</x>", 'Unsupported start tag "x" at byte offset 2'),
        ("a < b", 'Unsupported start tag "" at byte offset 2'),
        ("<b", "Unclosed start tag at byte offset 0"),
        ("<", "Unclosed start tag at byte offset 0"),
        ("x</b>", "Unexpected end tag at byte offset 1"),
        ("<b>x</i>", 'Unmatched end tag at byte offset 4, expected "</b>", found "</i>"'),
        ("<b>x</b", "Unclosed end tag at byte offset 4"),
        ("<span>x</span>", 'Tag "span" must have class "tg-spoiler" at byte offset 0'),
        ("<a href>x</a>", 'Expected equal sign in declaration of an attribute of the tag "a" at byte offset 0'),
        ('<a ="x">x</a>', 'Empty attribute name in the tag "a" at byte offset 0'),
        ("<a href=x/y>x</a>", "Unexpected end of name token at byte offset 8"),
        ('<a href="x>x</a>', "Unclosed start tag at byte offset 0"),
        ("<a href=", 'Unclosed start tag "a" at byte offset 0'),
        ("<!-- x -->", 'Unsupported start tag "!--" at byte offset 0'),
        ("<br>", 'Unsupported start tag "br" at byte offset 0'),
        ("&#xd83d;", LONE_SURROGATE),
        ('<tg-emoji emoji-id="x">x</tg-emoji>', "Invalid custom emoji identifier specified"),
    ],
)
def test_broken_html_is_refused_in_the_servers_words(source: str, problem: str) -> None:
    """Broken HTML is refused with the real server's text, including the byte offset."""
    with pytest.raises(EntitiesInvalid) as raised:
        parse_html(source)
    assert str(raised.value) == problem


def test_trim_moves_entities_along() -> None:
    """White space around a message is removed, and no entity extends beyond the rest."""
    source = parse_html(" \n a<b>b </b><i> </i>\n")
    assert trim(source) == ("ab", [entity("bold", 1, 1)])
    assert trim(parse_html("<b> a</b>")) == (" a", [entity("bold", 0, 2)])
    assert trim(FormattedText(" \n", [])) == ("", [])


@given(st.text(alphabet=st.sampled_from("<>/=\"'&#;xab😀 \n\0") | st.characters(codec="utf-8"), max_size=60))
def test_any_text_is_parsed_or_refused(source: str) -> None:
    """For any input, the parser either refuses the text or returns entities inside it."""
    try:
        text, entities = parse_html(source)
    except EntitiesInvalid:
        return
    for found in entities:
        assert 0 <= found["offset"] < found["offset"] + found["length"] <= utf16_length(text)
    text.encode()

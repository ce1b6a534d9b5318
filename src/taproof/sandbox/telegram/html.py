"""A parser of Telegram's HTML, which converts text with tags to plain text and entities, or refuses it.

It follows the documentation (https://core.telegram.org/bots/api#html-style) and the real server's answers to broken
input. A bot gets the same errors, with the same texts. Offsets of entities are in UTF-16 code units, those in errors
in bytes of UTF-8.
"""

import re
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

Entity = dict[str, Any]
"""A MessageEntity (https://core.telegram.org/bots/api#messageentity)."""

_TYPES: Final = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "tg-spoiler": "spoiler",
    "span": "spoiler",
    "tg-emoji": "custom_emoji",
    "a": "text_link",
    "pre": "pre",
    "code": "code",
    "blockquote": "blockquote",
}
_LITERALS: Final = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
# The real parser's strings end with "\0", which it treats as white space.
_REFERENCE: Final = re.compile(r"&(?:#x([0-9a-fA-F]+)|#([0-9]+)|([a-zA-Z]+));?")
_NAME: Final = re.compile(r"[^ \t\r\n\v\0>]*")
_ATTRIBUTE: Final = re.compile(r"[^ \t\r\n\v\0=]*")
_SPACE: Final = re.compile(r"[ \t\r\n\v\0]*")
_NAME_TOKEN: Final = re.compile(r"[A-Za-z0-9.-]*")
_EXPANDABLE: Final = re.compile(r"expandable(?=[\s>])")
_EMOJI_ID: Final = re.compile(r"-?[0-9]{1,19}")
_SCHEME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
_PLAIN: Final = re.compile(r"[^<&]+")
_CONTROL: Final = {n: " " for n in range(32) if chr(n) not in "\n\r"} | dict.fromkeys([13, *range(0x2028, 0x202F)])


class EntitiesInvalid(Exception):
    """The text cannot be parsed. The message is the Bot API's text after "can't parse entities: "."""


class FormattedText(NamedTuple):
    """A plain text and the entities that format parts of it."""

    text: str
    entities: list[Entity]


def utf16_length(text: str) -> int:
    """Return the length of a text in UTF-16 code units, the Bot API's unit."""
    return len(text) + sum(character > "\uffff" for character in text)


def clean_text(text: str) -> str:
    """Return a text as the messenger stores it: with spaces for control characters, and without direction overrides."""
    return text.translate(_CONTROL)


def parse_html(source: str) -> FormattedText:
    """Return the text and the entities that `source` describes.

    Raises:
        EntitiesInvalid: the HTML is malformed. The message is the real server's.
    """
    return _Parser(source).parse()


def trim(formatted: FormattedText) -> FormattedText:
    """Return a text as the messenger sends it: without surrounding white space, and with the entities shifted."""
    text, entities = formatted
    first = min((entity["offset"] for entity in entities), default=len(text))
    leading = min(len(text) - len(text.lstrip(" \n")), first)
    text = text[leading:].rstrip(" \n")
    length = utf16_length(text)
    moved = []
    for entity in entities:
        offset = entity["offset"] - leading
        if offset < length:
            moved.append(entity | {"offset": offset, "length": min(entity["length"], length - offset)})
    return FormattedText(text, moved)


@dataclass(slots=True)
class _Tag:
    name: str
    offset: int
    part: int
    argument: str


@dataclass(slots=True)
class _Parser:
    source: str
    position: int = 0
    offset: int = 0
    parts: list[str] = field(default_factory=list)
    tags: list[_Tag] = field(default_factory=list)
    entities: list[Entity] = field(default_factory=list)

    def parse(self) -> FormattedText:
        while self.position < len(self.source):
            start = self.position
            if plain := _PLAIN.match(self.source, start):
                self.position = plain.end()
                self._add(plain[0])
            elif self.source[start] == "&":
                self._add(self._reference() or self._take("&"))
            elif self._peek(start + 1) == "/":
                self._end_tag(start)
            else:
                self._start_tag(start)
        if self.tags:
            raise EntitiesInvalid(f'Can\'t find end tag corresponding to start tag "{self.tags[-1].name}"')
        text = "".join(self.parts)
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise EntitiesInvalid(
                "Text contains invalid Unicode characters after decoding HTML entities, check for unmatched surrogate "
                "code units"
            )
        self.entities.sort(key=lambda entity: (entity["offset"], -entity["length"]))
        return FormattedText(text, self.entities)

    def _peek(self, position: int) -> str:
        return self.source[position] if position < len(self.source) else "\0"

    def _take(self, text: str) -> str:
        self.position += len(text)
        return text

    def _skip(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.source, self.position)
        assert found is not None  # noqa: S101 — all of these patterns also match an empty string.
        return self._take(found[0])

    def _add(self, text: str) -> None:
        text = clean_text(text)
        self.parts.append(text)
        self.offset += utf16_length(text)

    def _fail(self, problem: str, position: int) -> EntitiesInvalid:
        return EntitiesInvalid(f"{problem} at byte offset {len(self.source[:position].encode())}")

    def _reference(self) -> str:
        """Read a character reference such as `&lt;`. Return "" for an invalid one, which stays as written."""
        found = _REFERENCE.match(self.source, self.position)
        if found is None:
            return ""
        if found[3] is not None:
            character = _LITERALS.get(found[3], "")
        else:
            # The real parser does not accept a longer number. The check also avoids parsing a million digits.
            too_long = len(found[0].removesuffix(";")) >= 10
            code = 0 if too_long else int(found[1] or found[2], 16 if found[1] else 10)
            character = chr(code) if 0 < code < 0x10FFFF else ""
        if character:
            self.position = found.end()
        return character

    def _start_tag(self, start: int) -> None:
        self.position += 1
        name = self._skip(_NAME).lower()
        if self.position >= len(self.source):
            raise self._fail("Unclosed start tag", start)
        if name not in _TYPES:
            raise self._fail(f'Unsupported start tag "{name}"', start)
        argument = ""
        while True:
            self._skip(_SPACE)
            if self._peek(self.position) == ">":
                break
            attribute, value = self._attribute(name, start)
            argument = _argument(name, attribute, value) or argument
        self.position += 1
        if name == "span" and argument != "spoiler":
            raise self._fail('Tag "span" must have class "tg-spoiler"', start)
        self.tags.append(_Tag(name, self.offset, len(self.parts), argument))

    def _attribute(self, tag: str, start: int) -> tuple[str, str]:
        if tag == "blockquote" and (bare := _EXPANDABLE.match(self.source, self.position)):
            return self._take(bare[0]), "1"
        attribute = self._skip(_ATTRIBUTE)
        if not attribute:
            raise self._fail(f'Empty attribute name in the tag "{tag}"', start)
        self._skip(_SPACE)
        if self._peek(self.position) != "=":
            raise self._fail(f'Expected equal sign in declaration of an attribute of the tag "{tag}"', start)
        self.position += 1
        self._skip(_SPACE)
        if self.position >= len(self.source):
            raise self._fail(f'Unclosed start tag "{tag}"', start)
        value = self._value()
        if self.position >= len(self.source):
            raise self._fail("Unclosed start tag", start)
        return attribute, value

    def _value(self) -> str:
        quote = self.source[self.position]
        if quote not in "'\"":
            begin = self.position
            token = self._skip(_NAME_TOKEN).lower()
            if self._peek(self.position) not in " \t\r\n\v\0>":
                raise self._fail("Unexpected end of name token", begin)
            return token
        self.position += 1
        value = []
        while self.position < len(self.source) and self.source[self.position] != quote:
            character = self.source[self.position]
            value.append((character == "&" and self._reference()) or self._take(character))
        self.position += 1
        return "".join(value)

    def _end_tag(self, start: int) -> None:
        if not self.tags:
            raise self._fail("Unexpected end tag", start)
        self.position += 2
        name = self._skip(_NAME).lower()
        self._skip(_SPACE)
        if self._peek(self.position) != ">":
            raise self._fail("Unclosed end tag", start)
        self.position += 1
        tag = self.tags[-1]
        if name not in {"", tag.name}:
            problem = self._fail("Unmatched end tag", start)
            raise EntitiesInvalid(f'{problem}, expected "</{tag.name}>", found "</{name}>"')
        self.tags.pop()
        if self.offset > tag.offset:
            self._add_entity(tag)

    def _add_entity(self, tag: _Tag) -> None:
        entity: Entity = {"type": _TYPES[tag.name], "offset": tag.offset, "length": self.offset - tag.offset}
        last = self.entities[-1] if self.entities else {}
        covers_last = (last.get("offset"), last.get("length")) == (entity["offset"], entity["length"])
        if tag.name == "a":
            url = _checked_link(tag.argument or "".join(self.parts[tag.part :]))
            if url is None:
                return
            entity["url"] = url
        elif tag.name == "tg-emoji":
            if not _EMOJI_ID.fullmatch(tag.argument) or int(tag.argument) == 0:
                raise EntitiesInvalid("Invalid custom emoji identifier specified")
            entity["custom_emoji_id"] = tag.argument
        elif tag.name == "blockquote" and tag.argument:
            entity["type"] = "expandable_blockquote"
        elif tag.name == "pre" and covers_last and last["type"] == "code" and "language" in last:
            last["type"] = "pre"
            return
        elif tag.name == "code":
            if covers_last and last["type"] == "pre" and tag.argument:
                last["language"] = tag.argument
                return
            if tag.argument:
                entity["language"] = tag.argument
        self.entities.append(entity)


def _argument(tag: str, attribute: str, value: str) -> str:
    """Return the argument of the tag that an attribute sets, "" if the attribute has no meaning there."""
    if (tag, attribute) in {("a", "href"), ("tg-emoji", "emoji-id"), ("blockquote", "expandable")}:
        return value
    if (tag, attribute) == ("code", "class") and value.startswith("language-"):
        return value.removeprefix("language-")
    if (tag, attribute) == ("span", "class") and value.startswith("tg-"):
        return value.removeprefix("tg-")
    return ""


def _checked_link(url: str) -> str | None:
    """Return a link as the messenger stores it, None for a link that it silently drops."""
    if _SCHEME.match(url) is None:
        url = f"http://{url}"
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.scheme in {"tg", "ton"} and parts.netloc:
        return url
    host = parts.hostname or ""
    if parts.scheme not in {"http", "https"} or "." not in host.strip(".") or " " in url:
        return None
    return url if parts.path else url.replace(parts.netloc, f"{parts.netloc}/", 1)

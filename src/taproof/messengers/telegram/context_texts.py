"""How a prompt tells where a request came from: in each language of `texts.py`.

The same rules hold as there. Everything behind a colon is put in as an isolate.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextTexts:
    """Those lines in one language."""

    page_line: str
    """With {page}, the domain of the page, or `page_not_told`."""
    page_not_told: str
    """Of a browser that does not say which page it is on."""
    browser_line: str
    """With {browser}: a browser's name, or `browser_on`."""
    place_line: str
    """With {place}, a town and its country in English."""
    browser_on: str
    """With {browser} and {system}."""


CONTEXT_ENGLISH: Final = ContextTexts(
    page_line="Page: {page}",
    page_not_told="not told",
    browser_line="Browser: {browser}",
    place_line="Approximate place: {place}",
    browser_on="{browser} on {system}",
)

CONTEXT_RUSSIAN: Final = ContextTexts(
    page_line="Страница: {page}",
    page_not_told="не указана",
    browser_line="Браузер: {browser}",
    place_line="Примерное место: {place}",
    browser_on="{browser} на {system}",
)

CONTEXT_UKRAINIAN: Final = ContextTexts(
    page_line="Сторінка: {page}",
    page_not_told="не вказана",
    browser_line="Браузер: {browser}",
    place_line="Приблизне місце: {place}",
    browser_on="{browser} на {system}",
)

CONTEXT_SPANISH: Final = ContextTexts(
    page_line="Página: {page}",
    page_not_told="no indicada",
    browser_line="Navegador: {browser}",
    place_line="Lugar aproximado: {place}",
    browser_on="{browser} en {system}",
)

CONTEXT_PORTUGUESE: Final = ContextTexts(
    page_line="Página: {page}",
    page_not_told="não informada",
    browser_line="Navegador: {browser}",
    place_line="Local aproximado: {place}",
    browser_on="{browser} no {system}",
)

CONTEXT_PERSIAN: Final = ContextTexts(
    page_line="صفحه: {page}",
    page_not_told="اعلام نشده",
    browser_line="مرورگر: {browser}",
    place_line="مکان تقریبی: {place}",
    browser_on="{browser} روی {system}",
)

CONTEXT_ARABIC: Final = ContextTexts(
    page_line="الصفحة: {page}",
    page_not_told="غير مذكورة",
    browser_line="المتصفح: {browser}",
    place_line="المكان التقريبي: {place}",
    browser_on="{browser} على {system}",
)

CONTEXT_INDONESIAN: Final = ContextTexts(
    page_line="Halaman: {page}",
    page_not_told="tidak disebutkan",
    browser_line="Peramban: {browser}",
    place_line="Perkiraan lokasi: {place}",
    browser_on="{browser} di {system}",
)

CONTEXT_TURKISH: Final = ContextTexts(
    page_line="Sayfa: {page}",
    page_not_told="bildirilmedi",
    browser_line="Tarayıcı: {browser}",
    place_line="Yaklaşık yer: {place}",
    browser_on="{browser}, {system}",
)

CONTEXT_UZBEK: Final = ContextTexts(
    page_line="Sahifa: {page}",
    page_not_told="aytilmagan",
    browser_line="Brauzer: {browser}",
    place_line="Taxminiy joy: {place}",
    browser_on="{browser}, {system}",
)

"""Generate the page of the session states and its picture from the table in `core/session_state.py`."""

from html import escape
from typing import Final

from scripts.docs_markdown import cell, table

from taproof.core.clock import MINUTE
from taproof.core.return_code import RETURN_LIFETIME
from taproof.core.session_state import SESSION_LIFETIME, TRANSITIONS, SessionEvent, State

STATES_INTRO: Final = """\
# Session states

![The states of a session and what leads from one to the next](../images/session-states.svg)

A session starts as `pending`. Only the transitions in the table exist: a second tap, a late tap or another `verify`
call after the result changes nothing.
"""
MEANINGS: Final[dict[State, str]] = {
    "pending": "The user has not decided.",
    "returning": "The user tapped Confirm and must return to the browser. Readers see `pending` and no identity.",
    "confirmed": "The user tapped Confirm; the application has not received the result yet.",
    "cancelled": "The user tapped Cancel or a wrong number, gave no phone number, or reported the sign-in, or the "
    "application cancelled it.",
    "expired": f"The user did not decide within {SESSION_LIFETIME // MINUTE} minutes, or did not return within "
    f"{RETURN_LIFETIME // MINUTE} minutes.",
    "used": "The application received identity and proof, or the user reported the sign-in. "
    "Create a new session for another sign-in.",
}
CAUSES: Final[dict[SessionEvent, str]] = {
    "open": "the user opens the link",
    "confirm": "the user taps Confirm",
    "cancel": "the user taps Cancel",
    "withdraw": "the application cancels",
    "await_return": "Confirm (code required)",
    "renew_return": "another tap: a new return code",
    "return": "verify gets the return code",
    "expire": "its time is over",
    "consume": "verify returns the result",
    "report": "the user taps This wasn't me",
}
AT_ONCE: Final = """\
**Expiry is immediate.** A pending session is `expired` for every reader from the instant its time is over, whether or
not housekeeping has recorded that. A tap at that instant or later does not confirm.

**Each change is one guarded statement.** Of many concurrent readers, taps or nodes, exactly one wins.

**`returning` is not a status.** With `same_device` set to `require`, Confirm begins it, for at most five minutes. Until
`verify` gets the return code, the session is `pending` for every reader, nothing is counted, and no event is sent. If
the session ends without the code, the identity is erased. If `verify` is interrupted after it has confirmed the
session, only the code gives the proof. Other readers see `pending`, and `expired` when the five minutes are over. See
[Same device](../how-to/phishing.md#same-device).

**With a `code_challenge`**, the holder of the verifier gets the same `confirmed` response again, byte for byte, for 60
seconds after the first one. A lost response therefore does not lose a sign-in. The state is `used` from the first
response on.
"""
_PLACES: Final[dict[State, tuple[int, int]]] = {
    "pending": (110, 160),
    "returning": (500, -50),
    "confirmed": (500, 60),
    "cancelled": (500, 170),
    "expired": (500, 270),
    "used": (1010, 60),
}
_WIDTH: Final = 130
_HEIGHT: Final = 44
_STYLE: Final = (
    ":root{color:#16211f;--line:#51605c;--box:#edf1f0;--state:#e2f1ef;--accent:#0f766e;--page:#fff}"
    "@media(prefers-color-scheme:dark){"
    ":root{color:#e6edeb;--line:#a7b6b2;--box:#1f2928;--state:#16322f;--accent:#4fd1c0;--page:#161e1d}}"
    "text{font:13px system-ui,sans-serif;fill:currentColor;text-anchor:middle}.s{font-weight:600}"
    "path{fill:none;stroke:var(--line);stroke-width:1.5;marker-end:url(#a)}.p{fill:var(--page)}"
    "rect.s{fill:var(--state);stroke:var(--accent);stroke-width:1.5}"
    "rect.e{fill:var(--box);stroke:var(--line);stroke-width:1.5}"
)
_ARROWHEAD: Final = (
    '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" orient="auto">'
    '<path d="M0 0L8 4L0 8z" style="fill:var(--line);stroke:none;marker-end:none"/></marker></defs>'
)


def states_page() -> str:
    """Return the page with the picture, the meaning of each state, and the table."""
    ends = {target for _, target in _moves()} - _leaves()
    states = [(f"`{state}`", cell(text), "yes" if state in ends else "") for state, text in MEANINGS.items()]
    moves = [(f"`{source}`", cell(CAUSES[event]), f"`{target}`") for (source, event), target in TRANSITIONS.items()]
    return "\n".join(
        [
            STATES_INTRO,
            table(("state", "meaning", "final"), states),
            table(("from", "when", "to"), moves),
            AT_ONCE,
        ]
    )


def _moves() -> dict[tuple[State, State], list[SessionEvent]]:
    """Return the events of each transition from one state to another, or back to itself."""
    moves: dict[tuple[State, State], list[SessionEvent]] = {}
    for (source, event), target in TRANSITIONS.items():
        moves.setdefault((source, target), []).append(event)
    return moves


def _leaves() -> set[State]:
    """Return the states that lead to another."""
    return {source for source, target in _moves() if source != target}


def states_picture() -> str:
    """Return the picture as SVG, light or dark like the page around it. Its background is opaque for other pages."""
    leaves = _leaves()
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 -130 1110 440" role="img">',
        "<title>The states of a session</title>",
        f"<style>{_STYLE}</style>",
        _ARROWHEAD,
        '<rect y="-130" width="1110" height="440" rx="8" class="p"/>',
    ]
    parts += [_arrow(source, events, target) for (source, target), events in _moves().items()]
    for state, (x, y) in _PLACES.items():
        kind = "s" if state in leaves else "e"
        box = f'x="{x - _WIDTH // 2}" y="{y - _HEIGHT // 2}" width="{_WIDTH}" height="{_HEIGHT}" rx="8"'
        parts.append(f'<rect class="{kind}" {box}/><text class="s" x="{x}" y="{y + 5}">{state}</text>')
    return "\n".join([*parts, "</svg>"])


def _arrow(source: State, events: list[SessionEvent], target: State) -> str:
    (x1, y1), (x2, y2) = _PLACES[source], _PLACES[target]
    causes = [escape(CAUSES[event]) for event in events]
    if source == target:  # A loop above the box.
        top = y1 - _HEIGHT // 2
        path = f"M{x1 - 25} {top}C{x1 - 35} {top - 50} {x1 + 35} {top - 50} {x1 + 25} {top}"
        return f'<path d="{path}"/>{_lines(causes, x1, top - 44)}'
    if x1 == x2:  # An arc from the right side of one box to that of another.
        side, far = x1 + _WIDTH // 2, x1 + _WIDTH // 2 + (y2 - y1) // 3
        return f'<path d="M{side} {y1}C{far} {y1} {far} {y2} {side} {y2}"/>{_lines(causes, side + 185, y2 - 58)}'
    start, end = x1 + _WIDTH // 2, x2 - _WIDTH // 2
    middle = (start + (60 if y1 != y2 else 0) + end) // 2
    # The line is level near its end, so the label fits above it.
    path = f"M{start} {y1}C{start + 40} {y1} {start + 10} {y2} {start + 60} {y2}L{end} {y2}"
    return f'<path d="{path}"/>{_lines(causes, middle, y2 - 8)}'


def _lines(texts: list[str], x: int, y: int) -> str:
    """Write texts one above the other, the last of them at `y`."""
    return "".join(f'<text x="{x}" y="{y - 16 * above}">{text}</text>' for above, text in enumerate(reversed(texts)))

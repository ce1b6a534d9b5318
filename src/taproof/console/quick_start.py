"""A project's quick start: sample programs that contain its id and this service's URL, and run as pasted.

Pygments highlights them on the server, so the page needs no script. It is installed with rich in any case.
"""

import functools
from dataclasses import dataclass
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from taproof.core.model import Project
from taproof.core.names import visible_name
from taproof.core.project_texts import DEFAULT, own_text
from taproof.http.sdk_files import SdkRelease


@dataclass(frozen=True, slots=True)
class Snippet:
    """A program in one language, or values to paste. `name` is part of its HTML element's id."""

    name: str
    title: str
    text: str
    language: str

    project_id: str

    @property
    def html(self) -> Markup:
        """The text with its syntax marked by the classes of Pygments."""
        marked = _mark_syntax(self.text.replace(self.project_id, _STAND_IN), self.language)
        return Markup(marked.replace(_STAND_IN, self.project_id))  # noqa: S704 — Pygments escapes the text.


_STAND_IN: Final = "proj_0"
"""Replaces the project's id, so that projects share the marked text: marking takes several ms of the event loop."""


@functools.lru_cache(maxsize=256)
def _mark_syntax(text: str, language: str) -> str:
    # The options keep the text as it is, with its blank lines and its last line break.
    lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    return str(highlight(text, lexer, HtmlFormatter(nowrap=True)))


_BUTTON: Final = {"button": ("Button", "html")}
_PROGRAMS: Final = {"node": ("Node.js", "javascript"), "python": ("Python", "python"), "curl": ("curl", "bash")}
_OIDC: Final = {"oidc": ("OpenID Connect", "bash")}
"""Each snippet's title and its language for Pygments."""


class QuickStart:
    """Generates a project's sample programs."""

    def __init__(self, base_url: str, release: SdkRelease) -> None:
        self._base_url = base_url
        self._release = release
        # The templates are programs, not HTML: the page escapes them. The only user input is the button's
        # label, which its template escapes.
        self._environment = Environment(
            loader=PackageLoader("taproof.console"),
            autoescape=False,  # noqa: S701 — see above.
            undefined=StrictUndefined,
            trim_blocks=True,
            keep_trailing_newline=True,
        )

    def snippets(self, project: Project) -> list[Snippet]:
        """Return the snippets. The programs use the server-side endpoints if the project's public access is off.

        The button runs in a browser, so it is included only with public access. The programs print the match code if
        the project uses match codes. They have no page to return to, so a project that requires one gets no programs.
        """
        must_return = project.same_device == "require"
        context = {
            "base_url": self._base_url,
            "project_id": project.id,
            "is_public": project.public_access,
            "has_match_code": project.match_code,
            "must_return": must_return,
            "release": self._release,
            "label": visible_name(own_text(project.texts, DEFAULT, "button_label")),
        }
        chosen = (_BUTTON if project.public_access else {}) | ({} if must_return else _PROGRAMS) | _OIDC
        return [
            Snippet(
                name,
                title,
                self._environment.get_template(f"quick_start_{name}.txt").render(context),
                language,
                project.id,
            )
            for name, (title, language) in chosen.items()
        ]

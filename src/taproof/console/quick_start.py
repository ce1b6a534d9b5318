"""A project's quick start: sample programs that contain its id and this service's URL, and run as pasted."""

import re
from dataclasses import dataclass
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from taproof.contract.project import DEFAULT
from taproof.core.names import visible_name
from taproof.core.project_texts import own_text
from taproof.core.projects import Project
from taproof.http.sdk_files import SdkRelease

_MARKED: Final = re.compile(
    r"""(?P<escaped>\\.)|(?P<string>"(?:[^"\\]|\\.)*"|'[^']*'|`[^`]*`)"""
    r"|(?P<keyword>\b(?:as|async|await|const|do|done|else|echo|for|from|function|if|import|new|return|script|sleep|throw"
    r"|while|with)\b)",
    re.DOTALL,
)
"""The strings and keywords of the samples, whatever their language, which the page colours. An escaped quote outside a
string is no string's beginning: otherwise, each of many would be read to the end of the text."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """A program in one language, or values to paste. `name` is part of its HTML element's id."""

    name: str
    title: str
    text: str

    @property
    def html(self) -> Markup:
        """The text with its strings and keywords marked."""
        parts, end = [], 0
        for found in _MARKED.finditer(self.text):
            marked = Markup('<span class="{}">{}</span>').format(found.lastgroup, found[0])
            parts += [escape(self.text[end : found.start()]), marked]
            end = found.end()
        return Markup().join([*parts, escape(self.text[end:])])


_BUTTON: Final = {"button": "Button"}
_PROGRAMS: Final = {"node": "Node.js", "python": "Python", "curl": "curl"}
_OIDC: Final = {"oidc": "OpenID Connect"}
"""Each snippet's title, by its name."""


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
            auto_reload=False,
            trim_blocks=True,
            keep_trailing_newline=True,
        )

    def load_templates(self) -> None:
        """Compile all templates, so that no page compiles one on the event loop."""
        for name in self._environment.list_templates(["txt"]):
            self._environment.get_template(name)

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
            Snippet(name, title, self._environment.get_template(f"quick_start_{name}.txt").render(context))
            for name, title in chosen.items()
        ]

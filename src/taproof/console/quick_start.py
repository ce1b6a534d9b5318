"""A project's quick start: sample programs that contain its id and this service's URL, and run as pasted."""

from dataclasses import dataclass
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from taproof.core.model import Project
from taproof.core.names import visible_name
from taproof.core.project_texts import DEFAULT, own_text
from taproof.http.sdk_files import SdkRelease


@dataclass(frozen=True, slots=True)
class Snippet:
    """A program in one language; `name` is part of its HTML element's id."""

    name: str
    title: str
    text: str


_BUTTON: Final = {"button": "A button for your page"}
_TITLES: Final = {"curl": "curl", "javascript": "JavaScript", "python": "Python"}


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
        """Return the programs. They use the server-side endpoints if the project's public access is off.

        The button runs in a browser, so it is included only with public access. The programs print the match code if
        the project uses match codes. They have no page to return to, so a project that requires one gets the button
        alone.
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
        titles = (_BUTTON if project.public_access else {}) | ({} if must_return else _TITLES)
        return [
            Snippet(name, title, self._environment.get_template(f"quick_start_{name}.txt").render(context))
            for name, title in titles.items()
        ]

"""Read a Dockerfile and a .dockerignore, as far as those of this repository need."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

Instruction = tuple[str, str]
"""Such as `("COPY", "src src")`."""


@dataclass(frozen=True, slots=True)
class Stage:
    """The instructions between one FROM and the next, in order; `image` is its base."""

    image: str
    instructions: list[Instruction] = field(default_factory=list)

    def all(self, name: str) -> list[str]:
        """Return the arguments of every instruction of that name."""
        return [arguments for each, arguments in self.instructions if each == name]

    def one(self, name: str) -> str:
        """Return the arguments of the one instruction of that name."""
        (arguments,) = self.all(name)
        return arguments


def read_dockerfile(path: Path) -> tuple[dict[str, str], list[Stage]]:
    """Return the ARGs before the first FROM with their defaults, and the stages."""
    arguments: dict[str, str] = {}
    stages: list[Stage] = []
    for name, rest in _instructions(path.read_text(encoding="utf-8")):
        if name == "FROM":
            stages.append(Stage(rest))
        elif stages:
            stages[-1].instructions.append((name, rest))
        else:
            assert name == "ARG", f"{name} stands before FROM"
            key, _, value = rest.partition("=")
            arguments[key] = value
    return arguments, stages


def _instructions(text: str) -> Iterator[Instruction]:
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in lines:
        while line.endswith("\\"):
            line = line[:-1].rstrip() + " " + next(lines).strip()  # noqa: PLW2901 — the line goes on.
        if line.strip():
            name, _, rest = line.strip().partition(" ")
            yield name, rest.strip()


def is_in_context(name: str, ignore: str) -> bool:
    """Return whether a file of the repository is sent to the builder; the last matching pattern decides."""
    included = True
    for line in ignore.splitlines():
        pattern = line.strip()
        if pattern and not pattern.startswith("#") and _fits(name, pattern.removeprefix("!")):
            included = pattern.startswith("!")
    return included


def _fits(name: str, pattern: str) -> bool:
    """Return whether a pattern matches: a file, everything below a directory, or with a leading `**/` at any depth."""
    parts = name.split("/")
    ahead = ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]
    if pattern.startswith("**/"):
        return any(fnmatch(part, pattern[3:]) for part in parts)
    return any(each.count("/") == pattern.count("/") and fnmatch(each, pattern) for each in ahead)


def copy_context(repository: Path, target: Path) -> None:
    """Copy the build context: the files of the repository that .dockerignore lets through."""
    ignore = (repository / ".dockerignore").read_text(encoding="utf-8")
    roots = {line[1:].split("/")[0] for line in ignore.splitlines() if line.startswith("!")}
    for root in sorted(roots):
        top = repository / root
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            name = path.relative_to(repository).as_posix()
            if path.is_file() and is_in_context(name, ignore):
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target / name)

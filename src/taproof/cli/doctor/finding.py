"""One finding of the doctor."""

import stat
from dataclasses import dataclass
from typing import Final, Literal

FindingStatus = Literal["ok", "warning", "problem"]
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
"""The mode bits that a file with secrets or personal data must not have."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; `advice` is empty if the status is ok."""

    name: str
    status: FindingStatus
    detail: str
    advice: str = ""


def ok(name: str, detail: str) -> Finding:
    """Return a finding that needs no action."""
    return Finding(name, "ok", detail)


def warning(name: str, detail: str, advice: str) -> Finding:
    """Return a finding that the operator should know about."""
    return Finding(name, "warning", detail, advice)


def problem(name: str, detail: str, advice: str) -> Finding:
    """Return a finding that prevents users from signing in."""
    return Finding(name, "problem", detail, advice)


def from_sentences(name: str, status: FindingStatus, sentences: str) -> Finding:
    """Return a finding for an error message, whose first sentence is the detail and the rest the advice."""
    detail, _, advice = sentences.partition(". ")
    return Finding(name, status, detail.removesuffix("."), advice)

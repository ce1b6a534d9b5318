"""One finding of the doctor."""

import stat
from dataclasses import dataclass
from typing import Final, Literal

FindingStatus = Literal["ok", "warning", "problem"]
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
"""The mode bits that a file with secrets or personal data must not have."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; `advice` says what to do, unless all is well."""

    name: str
    status: FindingStatus
    detail: str
    advice: str = ""


def from_sentences(name: str, status: FindingStatus, sentences: str) -> Finding:
    """Make a finding of an error's text: first what is wrong, then what to do."""
    detail, _, advice = sentences.partition(". ")
    return Finding(name, status, detail.removesuffix("."), advice)

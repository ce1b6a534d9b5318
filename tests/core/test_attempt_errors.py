"""The reasons why an attempt to deliver an event failed: the stored codes, and those derived from a status."""

from collections.abc import Sequence
from typing import get_args

import pytest

from taproof.contract.delivery import SENTENCES, AttemptError, Refusal, ShownError
from taproof.core.attempt_errors import attempt_error


def test_every_code_has_its_sentence() -> None:
    """Each code has its own text of at least two sentences: the problem, and what to do."""
    assert list(SENTENCES) == list(get_args(ShownError)) == [*get_args(AttemptError), *get_args(Refusal)]
    assert len(set(SENTENCES.values())) == len(SENTENCES)
    for sentence in SENTENCES.values():
        assert sentence.endswith(".")
        assert ". " in sentence
        assert " | " not in sentence
    assert "webhook_url" in SENTENCES["redirected"]
    assert "webhook_url" in SENTENCES["gone"]


def test_what_is_stored_is_shown(subtests: pytest.Subtests) -> None:
    """An attempt without an answer shows its stored reason, with any status."""
    for status in [None, 200, 410]:
        for code in get_args(AttemptError):
            with subtests.test(code=code, status=status):
                assert attempt_error(status, code) == code


REDIRECTS = (301, 302, 303, 307, 308)


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (range(100, 200), "not_accepted"),
        (range(200, 300), None),
        (REDIRECTS, "redirected"),
        (sorted({*range(300, 400)} - {*REDIRECTS}), "not_accepted"),
        (range(400, 410), "not_accepted"),
        (range(410, 411), "gone"),
        (range(411, 1000), "not_accepted"),
    ],
)
def test_an_answer_that_takes_nothing_says_so(statuses: Sequence[int], expected: str | None) -> None:
    """Only a 2xx accepts an event (contract.md, Webhooks). A 3xx without another address is not a redirect."""
    assert {attempt_error(status, None) for status in statuses} == {expected}


def test_no_code_is_made_up() -> None:
    """A reason that a newer release stored is not shown as a code of this release, and raises no error."""
    assert [attempt_error(None, code) for code in (None, "of_tomorrow", "", "redirected ")] == [None] * 4

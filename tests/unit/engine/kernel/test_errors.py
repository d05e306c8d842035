"""Error messages are complete sentences, whatever their parts."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from dbt.adapters.silt.engine.kernel.errors import SiltError, sentence

_ODD_STOPS = re.compile(r"(?<!\.)\.\.(?!\.)|\.{4,}|[!?…]\.| \.(\s|$)|\n\.")
"""Two full stops, a full stop after another end of a sentence, and a full stop after a space."""


def _kinds(kind: type[SiltError]) -> Iterator[type[SiltError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _kinds(each)


@pytest.mark.parametrize("kind", tuple(_kinds(SiltError)), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    "ending", ["", ".", "..", ". ", ".\n", "\n", "!", "?", "...", "…", ".)", "`.`", "\nSQLSTATE: 22012\n.\n"]
)
def test_every_error_ends_its_sentences_with_one_full_stop(kind: type[SiltError], ending: str) -> None:
    own = kind(f"it broke{ending}", table="silt.main.t", version=3)
    given = kind(f"it broke{ending}", remedy=f"Mend it{ending}")
    for error in (own, given):
        assert not _ODD_STOPS.search(str(error)), str(error)
        assert str(error).endswith(error.sentences)
        assert not error.problem.endswith(" ") and not re.search(r"(?<!\.\.)\.$", error.problem)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Run it again", "Run it again."),
        ("Run it again. ", "Run it again."),
        ("Is it there?", "Is it there?"),
        ("for example 1, 2, ...", "for example 1, 2, ..."),
    ],
)
def test_a_text_is_ended_as_a_sentence(text: str, expected: str) -> None:
    assert sentence(text) == expected

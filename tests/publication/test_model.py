"""The protocol of a publication has no state in which a reader sees a part of it, or in which rows are lost."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from tests.publication.explore import explore
from tests.publication.model import Rules, Stack, State, Status, Step, Violation

FIRST: Stack = (Step("begin", 0),)
SECOND: Stack = (Step("begin", 1),)
READER: Stack = (Step("read"),)
WRITER: Stack = (Step("overwrite", table=1),)
FOREIGN: Stack = (Step("append_foreign", table=0),)
RECOVERER: Stack = (Step("recover", 1), Step("recover", 0))

CONFLICTS = {"no": (False, False), "one table": (False, True), "both tables": (True, True)}


def state(*processes: Stack, crashes: int = 0) -> State:
    return State((Status.MISSING, Status.MISSING), ((), ()), processes, frozenset(), crashes)


SMALL = {
    "two publications": state(FIRST, SECOND, READER),
    "two publications, a crash": state(FIRST, SECOND, READER, crashes=1),
    "a recovery beside the publisher": state(FIRST, READER, RECOVERER, crashes=1),
    "a writer that overwrites": state(FIRST, SECOND, WRITER),
    "a writer and a crash": state(FIRST, WRITER, READER, crashes=1),
    "another engine and a crash": state(FIRST, FOREIGN, READER, RECOVERER, crashes=1),
}


@pytest.mark.parametrize("conflicts", CONFLICTS.values(), ids=CONFLICTS)
@pytest.mark.parametrize("first", SMALL.values(), ids=SMALL)
def test_no_order_of_requests_breaks_a_publication(first: State, conflicts: tuple[bool, ...]) -> None:
    assert explore(first, Rules(conflicts, overwrites_conflict=True)) > 1000


@pytest.mark.long
@pytest.mark.parametrize("conflicts", CONFLICTS.values(), ids=CONFLICTS)
def test_two_publishers_a_reader_and_a_recoverer_may_crash_at_any_request(conflicts: tuple[bool, ...]) -> None:
    assert explore(state(FIRST, SECOND, READER, RECOVERER, crashes=1), Rules(conflicts)) > 100_000


@pytest.mark.parametrize("rule", [each.name for each in fields(Rules) if each.default is True])
def test_each_rule_is_needed(rule: str) -> None:
    assert any(is_broken(first, conflicts, rule) for first in SMALL.values() for conflicts in CONFLICTS.values())


def is_broken(first: State, conflicts: tuple[bool, ...], rule: str) -> bool:
    """Whether a state that must not be reached can be reached without the rule."""
    rules = replace(Rules(conflicts, overwrites_conflict=True), **{rule: False})  # type: ignore[arg-type]
    try:
        explore(first, rules)
    except Violation:
        return True
    return False

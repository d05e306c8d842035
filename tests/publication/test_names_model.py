"""The protocol of names has no state in which a reader sees an undecided change, or in which a change is lost."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from tests.publication.model import Status, Violation
from tests.publication.names_model import Name, Rules, Stack, State, Step, explore

FIRST: Stack = (Step("branch", 0),)
SECOND: Stack = (Step("branch", 1),)
READER: Stack = (Step("show"),)
WRITER: Stack = (Step("change"),)
RECOVERER: Stack = (Step("settle", 0),)


def state(*processes: Stack, names: int = 1, crashes: int = 0) -> State:
    missing = (Status.MISSING, Status.MISSING)
    return State(missing, ((), ()), (Name(),) * names, processes, frozenset(), crashes)


STORIES = {
    "two publications and a reader": state(FIRST, SECOND, READER, crashes=1),
    "a writer": state(FIRST, SECOND, WRITER),
    "a writer and a crash": state(FIRST, WRITER, READER, crashes=1),
    "a second process settles the first": state(FIRST, WRITER, WRITER, crashes=1),
    "a recovery and a writer": state(FIRST, RECOVERER, WRITER),
    "two crashes": state(FIRST, WRITER, crashes=2),
}
IN_FOLDERS = {
    "two publications of two names": state(FIRST, SECOND, READER, names=2, crashes=1),
    "a writer beside two names": state(FIRST, SECOND, WRITER, names=2),
    "a writer, two names and a crash": state(FIRST, WRITER, READER, names=2, crashes=1),
}


@pytest.mark.parametrize("first", STORIES.values(), ids=STORIES)
def test_no_order_of_requests_loses_a_name_in_an_object_store(first: State) -> None:
    assert explore(first, Rules()) > 100


@pytest.mark.parametrize("first", IN_FOLDERS.values(), ids=IN_FOLDERS)
def test_no_order_of_steps_loses_a_name_in_folders(first: State) -> None:
    assert explore(first, Rules(is_locked=True)) > 100


@pytest.mark.parametrize("rule", [each.name for each in fields(Rules) if each.default is True])
def test_each_rule_of_names_is_needed(rule: str) -> None:
    in_store, in_folders = (replace(Rules(is_locked=is_locked), **{rule: False}) for is_locked in (False, True))
    in_store_breaks = any(is_broken(first, in_store) for first in STORIES.values())
    assert in_store_breaks or any(is_broken(first, in_folders) for first in IN_FOLDERS.values())


def is_broken(first: State, rules: Rules) -> bool:
    """Whether a state that must not be reached can be reached."""
    try:
        explore(first, rules)
    except Violation:
        return True
    return False

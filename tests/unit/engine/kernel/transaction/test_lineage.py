"""A RESTORE undoes all commits after the restored version, including other RESTOREs."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.transaction.lineage import undoing


@dataclass(frozen=True)
class _Commit:
    version: int
    back_to: int | None


@st.composite
def histories(draw: st.DrawFn) -> list[_Commit]:
    """Draws commits of the versions 0, 1, 2 ..., some of which restore an earlier version."""
    length = draw(st.integers(1, 12))
    targets = [draw(st.none() | st.integers(0, version - 1)) if version else None for version in range(length)]
    return [_Commit(version, back_to) for version, back_to in enumerate(targets)]


@given(histories())
def test_commits_that_are_not_undone_are_those_of_the_newest_version(commits: list[_Commit]) -> None:
    held: list[set[int]] = []
    for commit in commits:
        before = held[-1] if held else set()
        held.append(before | {commit.version} if commit.back_to is None else held[commit.back_to])
    steps = list(undoing(reversed(commits), lambda commit: commit.back_to))
    assert [step.commit for step in steps] == commits[::-1]
    assert {step.commit.version for step in steps if step.undone_by is None and step.back_to is None} == held[-1]
    for step in steps:
        if step.undone_by is not None:
            assert step.undone_by.back_to is not None
            assert step.undone_by.back_to < step.commit.version < step.undone_by.version

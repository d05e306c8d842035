"""The stories of publications find each bug that is planted in the code: a rule of decision 0088 that it leaves out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.publication import attempts, publication_tables, publications
from dbt.adapters.silt.engine.kernel.publication.documents import Status
from dbt.adapters.silt.engine.kernel.publication.publications import Publications
from dbt.adapters.silt.engine.kernel.publication_marks import made_by
from dbt.adapters.silt.engine.kernel.transaction import commit
from tests.memory_store import MemoryStore
from tests.publication import test_interleaved, test_killed

STORIES: tuple[Callable[[], None], ...] = (
    lambda: test_killed.test_readers_see_all_or_nothing_before_and_after_the_next_writer(MemoryStore, "done"),
    lambda: test_killed.test_readers_see_all_or_nothing_before_and_after_the_next_writer(MemoryStore, "late"),
    lambda: test_killed.test_a_conflict_with_another_engine_undoes_what_was_put("done"),
    lambda: test_killed.test_a_conflict_with_another_engine_undoes_what_was_put("late"),
    lambda: test_interleaved.test_two_publications_that_replace_all_rows_are_in_one_order(MemoryStore),
    lambda: test_interleaved.test_a_read_of_a_table_is_checked_when_another_is_changed(),
    lambda: test_interleaved.test_a_killed_publisher_beside_another_publisher_is_completed_or_undone("done"),
)


def reads_undecided(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Publications, "is_published", lambda *_: True)


def settles_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(commit, "_settled", lambda _, winner: winner)


def undoes_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(publications, "undo", lambda *_: None)


def decides_first(patch: pytest.MonkeyPatch) -> None:
    complete = Publications.complete

    def deciding(self: Publications, begun: Any, tables: Any, waiting: tuple[int, ...] = ()) -> Any:
        self.documents.decide(begun, Status.PUBLISHED, dict.fromkeys((part.table for part in begun.written), 2))
        return complete(self, begun, tables, waiting)

    patch.setattr(Publications, "complete", deciding)


def puts_twice(patch: pytest.MonkeyPatch) -> None:
    existing = publication_tables.existing_table

    def anew(log: Any, part: Any) -> Any:
        found = existing(log, part)
        if found.info is None:
            return found
        return replace(found, info=replace(found.info, txn_id=log.clock.new_id()))

    patch.setattr(publications, "existing_table", anew)


def checks_no_reads(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(publication_tables.ExistingTable, "checked", lambda table, *_: table)


def checks_no_conflicts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(publication_tables, "check_conflicts", lambda _, pending: pending)


def leaves_no_mark(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attempts, "made_by", lambda publication: made_by(publication + 1))


BUGS = (
    reads_undecided,
    settles_nothing,
    undoes_nothing,
    decides_first,
    puts_twice,
    checks_no_reads,
    checks_no_conflicts,
    leaves_no_mark,
)


@pytest.mark.long
@pytest.mark.parametrize("plant", BUGS, ids=[bug.__name__ for bug in BUGS])
def test_a_planted_bug_is_found(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert any(fails(story) for story in STORIES)


def fails(story: Callable[[], None]) -> bool:
    try:
        story()
    except Exception:
        return True
    return False

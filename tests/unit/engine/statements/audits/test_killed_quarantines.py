"""A process killed at any write of a quarantine leaves both tables changed or neither, and a rerun does it once.

A quarantine is a transaction of two commits, which a statement makes for itself.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt import engine as silt
from dbt.adapters.silt.engine import warehouse
from dbt.adapters.silt.engine.audits.audit import Audit, Audits, Limit, OnFailure
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalFolder, LocalStore
from tests.unit.engine.house import House, opened
from tests.unit.engine.place import Place

AUDITS: Final = Audits(
    (Audit("positive", "select * from main.t where v < 0"),),
    on_failure=OnFailure.QUARANTINE,
    max_quarantined=Limit(10),
)
STATEMENTS: Final = {
    "insert": "insert into t values (1, 1.0), (2, -1.0)",
    "merge": "merge into t using (select * from values (1L, 1.0D), (2L, -1.0D) as s(id, v)) s on t.id = s.id "
    "when matched then update set * when not matched then insert *",
}
BEFORE: Final[tuple[list[int], list[int]]] = ([0], [])
AFTER: Final = ([0, 1], [2])
WRITES: Final = (
    *((LocalStore, name) for name in ("put", "put_if_absent", "delete", "delete_folder", "rename_folder")),
    (LocalFolder, "put_if_absent"),
)
MOST_WRITES: Final = 200


class Killed(BaseException):
    """Ends the process of a statement; nothing handles it."""


def dies_after(patch: pytest.MonkeyPatch, writes: int) -> None:
    """Lets the process write so often, and then nothing more; the last write is done if its number is even."""
    left, is_done = [writes], writes % 2 == 0

    def dying(write: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            done = write(*arguments) if left[0] or is_done else None
            if not left[0]:
                raise Killed
            return done

        return run

    for kind, name in WRITES:
        patch.setattr(kind, name, dying(getattr(kind, name)))


def state(house: House) -> tuple[list[int], list[int]]:
    """Returns the ids in both tables, as a program without Spark reads them."""
    found = []
    for table in ("t", "t__quarantine"):
        is_there = house.warehouse.catalog.find(RelationName("silt", "main", table)) is not None
        rows = silt.read(f"main.{table}", warehouse=str(house.root)).column("id").to_pylist() if is_there else []
        found.append(sorted(rows))
    return found[0], found[1]


def kills(spark: SparkSession, folder: Path, statement: str) -> Iterator[None]:
    """Kills the statement at each of its writes, and runs it again.

    Raises:
        AssertionError: if a reader sees a part of it, or the rerun does it twice.
    """
    first = opened(spark, Place(folder / "first", None))
    first.sql("create table t (id bigint, v double)")
    first.sql("insert into t values (0, 1.0)")
    for writes in range(1, MOST_WRITES):
        here = folder / str(writes)
        shutil.copytree(folder / "first", here)
        house = opened(spark, Place(here, None))
        with contextlib.suppress(Killed), pytest.MonkeyPatch.context() as patch:
            dies_after(patch, writes)
            house.warehouse.execute(STATEMENTS[statement], ("load", 1), audits=AUDITS)
            return
        assert state(house.another()) in (BEFORE, AFTER), f"killed at write {writes}: a part is visible"
        house.another().warehouse.execute(STATEMENTS[statement], ("load", 1), audits=AUDITS)
        assert state(house.another()) == AFTER, f"killed at write {writes}: not once"
        shutil.rmtree(here)
        yield
    raise AssertionError("the statement does not end")


@pytest.mark.parametrize("statement", ["insert", pytest.param("merge", marks=pytest.mark.long)])
def test_both_tables_are_changed_or_neither_and_a_rerun_does_it_once(
    spark: SparkSession, tmp_path: Path, statement: str
) -> None:
    assert len(list(kills(spark, tmp_path, statement))) >= 10


def test_two_commits_without_a_transaction_are_found(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warehouse, "_changes_two_tables", lambda _statement, _settings: False)
    with pytest.raises(AssertionError, match=r"a part is visible|not once"):
        list(kills(spark, tmp_path, "insert"))

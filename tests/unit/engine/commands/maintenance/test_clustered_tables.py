"""OPTIMIZE of clustered tables: cubes of files, kept as long as they are large, next to other engines' files."""

from __future__ import annotations

import contextlib
import itertools
import json
import random
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from dbt.adapters.silt.engine.commands.maintenance.optimize import Layout, optimize
from dbt.adapters.silt.engine.commands.target import Target, WriteSettings
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.maintenance.file_states import files_of
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.kernel.table.paths import decode_path
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.unit.engine.catalog.test_rollback import Killed, Mortal
from tests.unit.engine.house import House

ROWS = "select /*+ coalesce(1) */ (id * 7919) % {0} as id, id % 10 as kind, cast(id as string) as note from range({0})"


def clustered(house: House, by: str = "id", size: int = 20_000) -> None:
    """Creates a table of several files after its first OPTIMIZE."""
    properties = "tblproperties ('delta.targetFileSize' = '40kb')"
    house.sql(f"create table t cluster by ({by}) {properties} as {ROWS.format(size)}")


def files(house: House) -> list[AddFile]:
    return list(house.log("t").snapshot().add_files())


def cubes(house: House) -> set[str | None]:
    return {(add.tags or {}).get("ZCUBE_ID") for add in files(house)}


def spans(house: House, column: str = "id") -> list[tuple[int, int]]:
    statistics = [json.loads(add.stats or "") for add in files(house)]
    return sorted((each["minValues"][column], each["maxValues"][column]) for each in statistics)


def optimized(house: House, more: str = "") -> int:
    """Runs OPTIMIZE; returns the number of files that it removed."""
    before = house.rows("select count(*), sum(hash(*)) from t")
    [row] = house.fetched(f"optimize t {more}")
    assert house.rows("select count(*), sum(hash(*)) from t") == before
    return int(row.metrics.numFilesRemoved)


@pytest.mark.connect
def test_rows_are_cut_into_files_by_one_column_and_a_second_optimize_does_nothing(house: House) -> None:
    clustered(house)
    assert optimized(house) == 1
    found = spans(house)
    assert len(found) > 3 and all(last <= first for (_, last), (first, _) in itertools.pairwise(found))
    assert {add.clustering_provider for add in files(house)} == {"liquid"} and len(cubes(house)) == 1
    tags = files(house)[0].tags or {}
    assert (tags["ZCUBE_ZORDER_BY"], tags["ZCUBE_ZORDER_CURVE"]) == ('["id"]', "zorder")
    info = next(iter(house.log("t").newest_commits())).info
    assert info.operation_parameters["clusterBy"] == '["id"]' and info.operation_parameters["isFull"] is False
    assert (optimized(house), optimized(house, "full")) == (0, 0)


def test_two_columns_are_ordered_on_a_curve(house: House) -> None:
    clustered(house, "kind, id")
    optimized(house)
    assert len(files(house)) > 3
    for column, all_values in (("kind", 10), ("id", 20_000)):
        widths = [last - first for first, last in spans(house, column)]
        assert sum(widths) / len(widths) < all_values * 0.9, column


def test_new_rows_become_a_cube_of_their_own_until_the_cubes_are_merged(house: House) -> None:
    clustered(house)
    optimized(house)
    [first] = cubes(house)
    kept = {add.path for add in files(house)}
    house.sql("insert into t values (1, 1, 'new')")
    house.sql("insert into t values (2, 1, 'new')")
    assert None in cubes(house)
    assert optimized(house) == 2
    assert first in cubes(house) and kept < {add.path for add in files(house)}
    for _ in range(5):
        house.sql(f"insert into t {ROWS.format(20_000)}")
    assert optimized(house) > 2
    assert len(cubes(house)) == 1 and first not in cubes(house)


def test_full_clusters_the_files_of_earlier_columns_too(house: House) -> None:
    clustered(house)
    optimized(house)
    before = {add.path for add in files(house)}
    house.sql("alter table t cluster by (kind)")
    assert optimized(house) == 0
    assert optimized(house, "full") == len(before)
    assert all(first == last or last - first <= 5 for first, last in spans(house, "kind"))
    house.sql("alter table t cluster by none")
    with pytest.raises(errors.UnsupportedStatementError, match="FULL"):
        optimized(house, "full")
    assert optimized(house) == 0


def test_files_that_another_implementation_clusters_are_never_written_again(house: House) -> None:
    clustered(house, size=1000)
    house.sql("insert into t values (1, 1, 'a')")
    log, snapshot = house.log("t"), house.log("t").snapshot()
    foreign = replace(files(house)[0], clustering_provider="other", data_change=False)
    commit(log, snapshot, Changes(Operation("OPTIMIZE"), (foreign,)), ReadSet(), CommitSettings())
    house.sql("insert into t values (2, 1, 'b')")
    for statement in ("optimize t", "optimize t full", "alter table t cluster by none", "optimize t"):
        house.sql(statement)
        assert foreign.path in {add.path for add in files(house)}


def test_a_vector_is_left_out_of_a_cube_that_stays_the_same_cube(house: House) -> None:
    clustered(house)
    house.sql("alter table t set tblproperties ('delta.enableDeletionVectors' = 'true')")
    optimized(house)
    [cube] = cubes(house)
    house.sql("delete from t where id % 2 = 1 and id < 3000")
    assert any(add.deletion_vector for add in files(house)) and cubes(house) == {cube}
    assert 0 < optimized(house) < len(files(house))
    assert cubes(house) == {cube} and sum(add.deletion_vector is not None for add in files(house)) <= 1
    house.sql("delete from t where id = 15000")
    assert optimized(house) == 0 and optimized(house, "full") > 1


def test_z_order_is_refused_by_name_and_partitions_are_not_conditions(house: House) -> None:
    clustered(house, size=100)
    with pytest.raises(errors.UnsupportedStatementError, match="clustered"):
        house.sql("optimize t zorder by (kind)")
    with pytest.raises(errors.UnsupportedStatementError, match="partition columns"):
        house.sql("optimize t where id = 1")


def test_changed_columns_during_an_optimize_win_and_leave_no_file(house: House) -> None:
    clustered(house, size=1000)
    house.sql("insert into t values (1, 1, 'a')")
    log = house.log("t")
    early = Target("t", log, log.snapshot())
    house.sql("alter table t cluster by (kind)")
    with pytest.raises(errors.ConcurrentDomainError):
        optimize(house.warehouse.spark, early, Layout("t"), WriteSettings())


@pytest.mark.parametrize("vectors", ["false", "true"])
def test_each_write_is_in_order_within_its_files(house: House, vectors: str) -> None:
    clustered(house, size=1000)
    house.sql(f"alter table t set tblproperties ('delta.enableDeletionVectors' = '{vectors}')")
    house.sql(f"insert into t {ROWS.format(500)}")
    house.sql("update t set note = 'u' where kind = 3")
    house.sql("delete from t where kind = 4")
    house.sql(
        f"merge into t using ({ROWS.format(2000)}) s on t.id = s.id and t.kind = s.kind "
        "when matched then update set note = s.note when not matched then insert *"
    )
    for add in files(house):
        if add.deletion_vector is None:
            with house.log("t").store.open_input(decode_path(add.path)) as source:
                ids = pq.read_table(source)["id"].to_pylist()
            assert ids == sorted(ids)


def test_upkeep_clusters_too(house: House) -> None:
    clustered(house)
    for number in range(5):
        house.sql(f"insert into t values ({number * 3000}, 1, 'x')")
    before = house.rows("select * from t order by all")
    [row] = house.fetched("optimize tables (t) budget '5 minutes'")
    assert (row.bins, row.waits) == (1, None)
    assert house.rows("select * from t order by all") == before
    assert not any(each.is_stale or each.is_foreign for each in files_of(house.log("t").snapshot()))
    assert house.fetched("optimize tables (t) budget '5 minutes'")[0].rewritten == 0


@pytest.mark.parametrize("after", [False, True])
def test_an_optimize_that_is_killed_at_any_step_changes_no_row_and_is_completed_by_the_next(
    house: House, after: bool
) -> None:
    house.sql("create table t (id bigint, v bigint) cluster by (id)")
    for step in range(1, 40):
        house.sql("insert into t select /*+ repartition(3) */ id, id from range(30)")
        before, left = house.rows("select count(*), sum(id) from t"), [step]
        log = house.log("t")
        mortal = DeltaLog(Mortal(log.store, left, after), log.name)
        with contextlib.suppress(Killed):
            optimize(house.warehouse.spark, Target("t", mortal, log.snapshot()), Layout("t"), WriteSettings())
        assert house.rows("select count(*), sum(id) from t") == before
        if left[0] > 0:
            assert step > 1 and None not in cubes(house)
            return
    pytest.fail("the steps did not end")


CHANGES = (
    "insert into {t} select id + {n}, {n} % 5, 'i' from range(40)",
    "insert overwrite {t} select id, kind, 'o' from {t} where id % 11 <> {n} % 11",
    "update {t} set note = 'u{n}' where id % 7 = {n} % 7",
    "delete from {t} where id % 13 = {n} % 13",
    "merge into {t} using (select id * 3 + {n} as id from range(30)) s on {t}.id = s.id and {t}.kind = 1 "
    "when matched then update set note = 'm{n}' when not matched then insert (id, kind, note) values (s.id, 1, 'n')",
)


@pytest.mark.parametrize("seed", [1, 2])
def test_random_changes_leave_a_clustered_table_with_the_rows_of_a_plain_table(house: House, seed: int) -> None:
    chance = random.Random(seed)
    vectors = f"'delta.enableDeletionVectors' = '{'true' if seed % 2 else 'false'}'"
    for name, clause in (("t", "cluster by (kind, id)"), ("plain", "")):
        house.sql(f"create table {name} (id bigint, kind bigint, note string) {clause} tblproperties ({vectors})")
    upkeep = ("optimize t", "optimize t full", "optimize tables (t) budget '1 minute'", "alter table t cluster by (id)")
    for number in range(10):
        change = chance.choice(CHANGES)
        for name in ("t", "plain"):
            house.sql(change.format(t=name, n=number))
        if chance.random() < 0.6:
            house.sql(chance.choice(upkeep))
        assert house.rows("select * from t") == house.rows("select * from plain"), (number, change)

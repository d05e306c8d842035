"""`silt_changes`: the rows that versions changed, with or without a change feed."""

from __future__ import annotations

import contextlib
import itertools
import random
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.kernel.errors import (
    ChangesMissingError,
    ColumnNotFoundError,
    DataFileMissingError,
    InvalidStatementError,
    RelationNotFoundError,
    StatementSyntaxError,
    UnsupportedStatementError,
    VersionNotFoundError,
)
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from tests.unit.engine.house import House, opened
from tests.unit.engine.place import Place

ADDED, REMOVED = ("insert", "update_postimage"), ("delete", "update_preimage")
FEED = {"delta.enableChangeDataFeed": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}
ROW_IDS = {"delta.enableRowTracking": "true"}
COLUMNS = "id int, size double, note string, tags map<string, int>, at struct<x: float, day: date>"


def changes(house: House, after: int | str, more: str = "") -> list[dict[str, Any]]:
    text = f"select * from silt_changes('main.t', after => {after}{more})"
    return list(house.sql(text).toArrow().to_pylist())


def feed(house: House, start: int) -> list[dict[str, Any]]:
    return list(house.sql(f"select * from table_changes('main.t', {start})").toArrow().to_pylist())


def content(house: House) -> Counter[str]:
    return Counter(repr(list(row.items())) for row in house.sql("select * from t").toArrow().to_pylist())


def values(rows: list[dict[str, Any]], kinds: tuple[str, ...]) -> Counter[str]:
    """Counts the rows of these change types, without the columns of changes."""
    kept = ([(k, v) for k, v in row.items() if k[0] != "_"] for row in rows if row["_change_type"] in kinds)
    return Counter(map(repr, kept))


def uncancelled(rows: list[dict[str, Any]]) -> Counter[str]:
    """Counts for each version how often it added a row minus how often it removed the row."""
    found: Counter[str] = Counter()
    for row in rows:
        key = repr([(k, v) for k, v in row.items() if k not in ("_change_type", "_commit_timestamp")])
        found[key] += 1 if row["_change_type"] in ADDED else -1
    return Counter({key: times for key, times in found.items() if times})


def properties(*given: dict[str, str]) -> str:
    pairs = ", ".join(f"'{key}' = '{value}'" for each in given for key, value in each.items())
    return f"tblproperties ({pairs})" if pairs else ""


def statements(seed: int) -> Iterator[str]:
    """Yields random statements on rows with nulls, duplicates, zeros of both signs and maps in both orders."""
    draw = random.Random(seed)

    def row() -> str:
        key = draw.choice(["null", *map(str, range(6))])
        size = draw.choice(["null", "0d", "-0d", "double('nan')", "1.5d"])
        tags = draw.choice(["null", "map('a', 1, 'b', null)", "map('b', null, 'a', 1)"])
        at = draw.choice(
            ["null", "named_struct('x', -0f, 'day', null)", "named_struct('x', 0f, 'day', date'2026-01-01')"]
        )
        return f"({key}, {size}, {draw.choice(['null', repr(''), repr('n')])}, {tags}, {at})"

    def rows(most: int = 4) -> str:
        return ", ".join(row() for _ in range(draw.randint(1, most)))

    def key() -> str:
        return draw.choice(["id is null", f"id = {draw.randint(0, 5)}", f"id < {draw.randint(1, 5)}"])

    yield f"insert into t values {rows(9)}, {rows(9)}"
    version = 1
    while True:
        yield draw.choice(
            [
                f"insert into t values {rows()}",
                f"delete from t where {key()}",
                f"update t set size = {draw.choice(['size', '-size', '0', 'null'])} where {key()}",
                f"merge into t using (values {rows(1)}) s(id, size, note, tags, at) on t.id <=> s.id "
                "when matched and t.id = 3 then delete when matched then update set * when not matched then insert *",
                "insert into t replace where id = {0} select * from t where id = {0}".format(draw.randint(0, 5)),
                f"insert overwrite t select * from t union all values {rows(2)}",
                "optimize t",
                f"restore table t to version as of {draw.randint(0, version)}",
            ]
        )
        version += 1


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 9))])
@pytest.mark.parametrize(
    "kind",
    [
        (),
        *(pytest.param(kind, marks=pytest.mark.long) for kind in ((VECTORS,), (ROW_IDS,), (FEED,))),
        (ROW_IDS, VECTORS),
        (FEED, VECTORS),
    ],
    ids=["plain", "vectors", "ids", "feed", "ids and vectors", "feed and vectors"],
)
def test_applying_the_changes_to_a_version_yields_the_next_version(
    house: House, kind: tuple[dict[str, str], ...], seed: int
) -> None:
    house.sql(f"create table t ({COLUMNS}) {properties(*kind)}")
    before, done = content(house), 0
    for statement in itertools.islice(statements(seed), 9):
        with contextlib.suppress(VersionNotFoundError):
            house.sql(statement)
        version, after = house.log("t").snapshot().version, content(house)
        found = changes(house, done)
        removed, added = values(found, REMOVED), values(found, ADDED)
        assert not removed - before, statement
        assert before - removed + added == after, statement
        assert {row["_commit_version"] for row in found} <= set(range(done + 1, version + 1))
        before, done = after, version
    everything = uncancelled(changes(house, 0))
    assert sum(everything.values()) == before.total()


@pytest.mark.parametrize("kind", [(), (VECTORS,), (ROW_IDS, VECTORS)], ids=["plain", "vectors", "ids"])
def test_the_changes_equal_those_of_the_change_feed(house: House, kind: tuple[dict[str, str], ...]) -> None:
    """Two tables with the same history, of which one records its changes."""
    for name, recording in (("t", ()), ("f", (FEED,))):
        house.sql(f"create table {name} (id int, size int, note string) {properties(*kind, *recording)}")
        for statement in (
            "insert into {} values (1, 10, 'a'), (1, 10, 'a'), (2, null, null), (3, 30, 'c'), (null, 4, 'd')",
            "update {} set size = size + 1 where id = 1 or note is null",
            "delete from {} where id = 3",
            "merge into {} t using (values (1, 5, 'x'), (7, 7, 'y')) s(id, size, note) on t.id = s.id and t.size = 99 "
            "when matched then update set * when not matched then insert *",
            "merge into {} t using (values (2, 5, 'x'), (8, 8, 'z')) s(id, size, note) on t.id = s.id "
            "when matched then update set * when not matched then insert * when not matched by source and t.id is null "
            "then delete",
            "insert overwrite {} values (2, 5, 'x'), (9, 9, 'n')",
        ):
            house.sql(statement.format(name))
    recorded = house.sql("select * from table_changes('main.f', 1)").toArrow().to_pylist()
    assert uncancelled(changes(house, 0)) == uncancelled(recorded)


@pytest.mark.connect
def test_changes_name_their_kind_version_and_time(house: House) -> None:
    house.sql("create table t (id int, size int)")
    house.sql("insert into t values (1, 1), (2, 2), (2, 2)")
    house.sql("update t set size = 20 where id = 1")
    times = {row.version: row.timestamp for row in house.fetched("describe history main.t")}
    assert house.rows("select * from silt_changes('main.t', after => 1)") == [
        (1, 1, "delete", 2, times[2]),
        (1, 20, "insert", 2, times[2]),
    ]
    assert house.rows("select * from silt_changes('main.t', after => 0, until => 1)") == [
        (1, 1, "insert", 1, times[1]),
        (2, 2, "insert", 1, times[1]),
        (2, 2, "insert", 1, times[1]),
    ]
    assert house.rows("select * from silt_changes('t')") == [
        (1, 20, "insert", 2, times[2]),
        (2, 2, "insert", 2, times[2]),
        (2, 2, "insert", 2, times[2]),
    ]
    assert not house.rows("select * from silt_changes('t', after => 2)")


def test_rows_with_ids_have_both_images_of_an_update(house: House) -> None:
    house.sql(f"create table t (id int, size int) {properties(ROW_IDS)}")
    house.sql("insert into t values (1, 1), (2, 2), (3, 3)")
    house.sql(
        "merge into t using (values (1, 10), (4, 40)) s(id, size) on t.id = s.id when matched then update set * "
        "when not matched then insert * when not matched by source and t.id = 3 then delete"
    )
    assert house.rows("select id, size, _change_type from silt_changes('main.t', after => 1)") == [
        (1, 1, "update_preimage"),
        (1, 10, "update_postimage"),
        (3, 3, "delete"),
        (4, 40, "insert"),
    ]
    house.sql("restore table t to version as of 1")
    assert house.rows("select id, size, _change_type from silt_changes('main.t', after => 2)") == [
        (1, 1, "update_postimage"),
        (1, 10, "update_preimage"),
        (3, 3, "insert"),
        (4, 40, "delete"),
    ]


def test_a_table_that_is_rebuilt_with_mostly_equal_rows_has_few_changes(house: House) -> None:
    house.sql("create table t as select id, id as size from range(100)")
    house.sql("create or replace table t as select id, if(id = 7, -7, id) as size, 'x' as note from range(100)")
    house.sql("create or replace table t as select id, if(id = 8, -8, id) as size, 'x' as note from range(100)")
    found = house.rows("select id, size, _change_type from silt_changes('main.t', after => 1)")
    assert found == [(7, -7, "delete"), (7, 7, "insert"), (8, -8, "insert"), (8, 8, "delete")]
    assert house.sql("select * from silt_changes('main.t', after => 0, until => 1)").count() == 200


@pytest.mark.connect
def test_upserts_are_the_newest_row_of_each_changed_key_or_its_deletion(house: House) -> None:
    house.sql("create table t (id int, region string, size int)")
    house.sql("insert into t values (1, 'n', 1), (2, 'n', 2), (3, 'n', 3), (null, 'n', 4)")
    house.sql("update t set size = size * 10 where id < 3 or id is null")
    house.sql("delete from t where id = 2")
    house.sql("update t set size = 11 where id = 1")
    text = "select id, size, _change_type, _commit_version from silt_changes('main.t', {} as => 'upserts', key => '{}')"
    changed = [(1, 11, "upsert", 4), (2, 20, "delete", 3), (None, 40, "upsert", 2)]
    assert house.rows(text.format("after => 1,", "id")) == changed
    assert house.rows(text.format("after => 1,", "ID, `region`")) == changed
    everything = [(1, 11, "upsert", 4), (3, 3, "upsert", 4), (None, 40, "upsert", 4)]
    assert house.rows(text.format("", "id")) == everything


def test_a_program_reads_changes_with_the_changes_method(house: House) -> None:
    house.sql("create table t (`a key` int, size int)")
    house.sql("insert into t values (1, 1), (2, 2)")
    house.sql("delete from t where size = 2")
    counted = house.warehouse.changes("main.t", after=0).groupBy("_change_type").count().collect()
    assert {(row[0], row[1]) for row in counted} == {("insert", 2), ("delete", 1)}
    assert house.warehouse.changes("t", after=0, until=1).count() == 2
    found = house.warehouse.changes("t", after=0, key=["a key"]).select("a key", "_change_type").collect()
    assert {tuple(row) for row in found} == {(1, "upsert"), (2, "delete")}


def test_changes_are_read_in_a_view_a_join_and_a_write(house: House) -> None:
    house.sql("create table t (id int)")
    house.sql("insert into t values (1), (2)")
    house.sql("create view v as select id from silt_changes('main.t', after => 0) c where c._change_type = 'insert'")
    house.sql("create table u as select a.id from v a join silt_changes('main.t', after => 0) b on a.id = b.id")
    assert house.rows("select * from u") == [(1,), (2,)]


def test_dropped_and_added_columns_are_read_as_in_the_last_version(house: House) -> None:
    house.sql(f"create table t (id int, gone int) {properties({'delta.columnMapping.mode': 'name'})}")
    house.sql("insert into t values (1, 1)")
    house.sql("alter table t drop column gone")
    house.sql("alter table t add column size int")
    house.sql("insert into t values (2, 2)")
    found = house.rows("select id, size, _change_type from silt_changes('main.t', after => 0)")
    assert found == [(1, None, "insert"), (2, 2, "insert")]


def test_a_table_with_variants_has_all_rewritten_rows_as_changes(house: House) -> None:
    house.sql("create table t (id int, v variant)")
    house.sql("insert into t select /*+ coalesce(1) */ id, parse_json('1') from values (1), (2) r(id)")
    house.sql("update t set id = 3 where id = 1")
    found = house.rows("select id, _change_type from silt_changes('main.t', after => 1)")
    assert found == [(1, "delete"), (2, "delete"), (2, "insert"), (3, "insert")]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        ("'main.v', after => 0", UnsupportedStatementError, "is a view"),
        ("'main.missing', after => 0", RelationNotFoundError, "main.missing"),
        ("'spark_catalog.default.t', after => 0", UnsupportedStatementError, "is not a table of the warehouse"),
        ("'parquet.`/nowhere`', after => 0", UnsupportedStatementError, "is not a table of the warehouse"),
        ("'main.t', after => 9", VersionNotFoundError, "newest version is 1, before 9"),
        ("'main.t', after => 0, until => 9", VersionNotFoundError, "newest version is 1, before 9"),
        ("'main.t', after => 1, until => 0", InvalidStatementError, "end with version 0"),
        ("'main.t', after => -1", InvalidStatementError, "`-1` is not a version"),
        ("'main.t', after => null", InvalidStatementError, "`null` is not a version"),
        ("'main.t', after => current_date", InvalidStatementError, "is not a version"),
        ("'main.t', 0", StatementSyntaxError, "the name of an option"),
        ("'main.t', since => 0", StatementSyntaxError, "no option `since`"),
        ("'main.t', after => 0, after => 0", StatementSyntaxError, "given twice"),
        ("'main.t', as => 'upserts'", StatementSyntaxError, "must be given together"),
        ("'main.t', key => 'id'", StatementSyntaxError, "must be given together"),
        ("'main.t', as => 'rows', key => 'id'", StatementSyntaxError, "must be given together"),
        ("'main.t', as => 'upserts', key => 'missing'", ColumnNotFoundError, "missing"),
        ("'main.t', as => 'upserts', key => 'tags'", InvalidStatementError, "a map cannot be a key"),
        ("'main.taken', after => 0", UnsupportedStatementError, "_change_type"),
        ("main.t, after => 0", StatementSyntaxError, "the table's name as a string"),
    ],
)
def test_invalid_calls_are_refused_with_the_reason(
    refusing: House, call: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        refusing.sql(f"select * from silt_changes({call})")


@pytest.fixture(scope="module")
def refusing(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> House:
    """A warehouse that no test changes."""
    house = opened(spark, Place(tmp_path_factory.mktemp("refusing")))
    house.sql("create table t (id int, tags map<string, int>)")
    house.sql("insert into t values (1, null)")
    house.sql("create view v as select * from main.t")
    house.sql("create table taken (id int, _change_type string)")
    return house


def test_a_column_that_became_another_column_is_refused(house: House) -> None:
    house.sql("create table t (id int, size int)")
    house.sql("create or replace table t (id int, size string)")
    with pytest.raises(ChangesMissingError, match="the column `size` of version 1 is another column"):
        house.sql("select * from silt_changes('main.t', after => 0)")


def test_the_error_for_a_cleaned_up_log_contains_a_remedy(house: House) -> None:
    house.sql("create table t (id int) tblproperties ('delta.checkpointInterval' = '2')")
    for _ in range(3):
        house.sql("insert into t values (1)")
    for version in (0, 1):
        house.log("t").store.delete(commit_path(version))
    assert house.another().sql("select * from silt_changes('main.t', after => 2)").count() == 1
    with pytest.raises(ChangesMissingError, match="after version 0 can no longer be read") as refused:
        house.another().sql("select * from silt_changes('main.t', after => 0)")
    assert "without `after`" in str(refused.value)


def test_data_files_that_vacuum_deleted_are_named(house: House) -> None:
    house.sql("create table t (id int)")
    house.sql("insert into t values (1), (2)")
    house.sql("update t set id = 3 where id = 1")
    (removed, *_) = (
        action for commit in house.log("t").commits(2) for action in commit.actions if action.key == "remove"
    )
    house.log("t").store.delete(removed.path)  # type: ignore[union-attr]
    with pytest.raises(DataFileMissingError, match="VACUUM may have deleted"):
        house.another().fetched("select * from silt_changes('main.t', after => 1)")


def test_data_files_that_are_old_and_missing_are_noticed_before_anything_is_read(house: House) -> None:
    house.sql("create table t (id int) tblproperties ('delta.deletedFileRetentionDuration' = 'interval 0 hours')")
    house.sql("insert into t values (1), (2)")
    house.sql("update t set id = 3 where id = 1")
    (removed, *_) = (
        action for commit in house.log("t").commits(2) for action in commit.actions if action.key == "remove"
    )
    house.log("t").store.delete(removed.path)  # type: ignore[union-attr]
    with pytest.raises(ChangesMissingError, match="VACUUM has deleted 1 of their files"):
        house.another().sql("select * from silt_changes('main.t', after => 1)")

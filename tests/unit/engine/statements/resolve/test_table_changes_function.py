"""The change data feed: the changes that each statement records, as silt and another reader read them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from dbt.adapters.silt.engine.kernel.errors import (
    ChangeDataNotRecordedError,
    InvalidNameError,
    InvalidStatementError,
    UnsupportedStatementError,
    VersionNotFoundError,
)
from tests.unit.engine.house import House

RECORDING = "tblproperties ('delta.enableChangeDataFeed' = 'true'{more})"
MARKING = ", 'delta.enableDeletionVectors' = 'true'"
COMES, GOES = ("insert", "update_postimage"), ("delete", "update_preimage")

# Statements, each with the number of its changes by kind.
STATEMENTS: list[tuple[str, dict[str, int]]] = [
    (
        "insert into t (id, kind, size) values (1, 'a', 10), (2, 'a', 20), (3, 'b', 30), (4, 'b', 40), (5, null, 50)",
        {"insert": 5},
    ),
    ("delete from t where id = 2", {"delete": 1}),
    ("update t set size = size + 1 where id in (1, 3)", {"update_preimage": 2, "update_postimage": 2}),
    ("update t set kind = 'c', note = uuid() where id = 4", {"update_preimage": 1, "update_postimage": 1}),
    (
        "merge into t using (values (1, 100), (3, 300), (6, 600), (7, 700)) s(id, size) on t.id = s.id "
        "when matched and t.id = 3 then delete when matched then update set size = s.size, note = uuid() "
        "when not matched and s.id = 6 then insert (id, kind, size) values (s.id, 'a', s.size)",
        {"update_preimage": 1, "update_postimage": 1, "delete": 1, "insert": 1},
    ),
    (
        "merge into t using (values (8), (8)) s(id) on t.id = s.id when not matched then insert (id) values (s.id)",
        {"insert": 2},
    ),
    ("merge into t using (values (8), (8), (9)) s(id) on t.id = s.id when matched then delete", {"delete": 2}),
    (
        "merge into t using (values (5, 'z'), (9, 'y')) s(id, kind) on t.id = s.id "
        "when matched then update set kind = s.kind when not matched then insert (id, kind) values (s.id, s.kind) "
        "when not matched by source and t.id = 6 then delete when not matched by source then update set size = 0",
        {"update_preimage": 3, "update_postimage": 3, "delete": 1, "insert": 1},
    ),
    (
        "merge into t using (values (1), (1), (77)) s(id) on t.id = s.id when matched then delete "
        "when not matched then insert (id, note) values (s.id, uuid())",
        {"delete": 1, "insert": 1},
    ),
    (
        "insert into t (id, kind, size, note) replace where id >= 9 "
        "select id, 'x', 1, uuid() from values (10), (12) v(id)",
        {"delete": 2, "insert": 2},
    ),
    (
        "insert into t (id, kind, size) replace using (id) values (10, 'y', 11), (11, 'y', 11)",
        {"delete": 1, "insert": 2},
    ),
    ("update t set size = -id", {"update_preimage": 5, "update_postimage": 5}),
    ("delete from t where kind = 'y'", {"delete": 2}),
    ("insert overwrite t (id) values (1)", {"insert": 1, "delete": 3}),
    ("truncate table t", {"delete": 1}),
]


def feed(house: House, start: int, end: int) -> list[dict[str, Any]]:
    table: pa.Table = house.sql(f"select * from table_changes('main.t', {start}, {end})").toArrow()
    return list(table.to_pylist())


def plain(rows: list[dict[str, Any]]) -> Counter[str]:
    """Counts rows without the commit time, which the other reader takes from another source."""
    return Counter(repr(sorted((k, v) for k, v in row.items() if k != "_commit_timestamp")) for row in rows)


def without_removal_of_a_marked_file(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns all changes except those of INSERT OVERWRITE, which removes a file with a deletion vector.

    For it, delta-rs (1.6) reads exactly the rows in the vector: it reports rows as deleted that an earlier version
    deleted, instead of the rows that this version deletes. The specification ("Add CDC File") and its own snapshots
    differ.
    """
    (version,) = (v for v, (text, _) in enumerate(STATEMENTS, start=1) if text.startswith("insert overwrite"))
    return [row for row in rows if row["_commit_version"] != version]


def values(rows: list[dict[str, Any]], kinds: tuple[str, ...]) -> Counter[str]:
    kept = ([(k, v) for k, v in row.items() if k[0] != "_"] for row in rows if row["_change_type"] in kinds)
    return Counter(map(repr, kept))


def content(house: House) -> Counter[str]:
    return Counter(repr(list(row.items())) for row in house.sql("select * from t").toArrow().to_pylist())


@pytest.mark.parametrize(("marking", "partitioning"), [("", "partitioned by (kind)"), (MARKING, "")])
def test_every_statement_records_its_changes(house: House, marking: str, partitioning: str) -> None:
    recording = RECORDING.format(more=marking)
    house.sql(f"create table t (kind string, id int, size int, note string) {partitioning} {recording}")
    before = content(house)
    for version, (statement, expected) in enumerate(STATEMENTS, start=1):
        house.sql(statement)
        changes = feed(house, version, version)
        after = content(house)
        assert Counter(row["_change_type"] for row in changes) == Counter(expected), statement
        assert not values(changes, GOES) - before, statement
        assert before - values(changes, GOES) + values(changes, COMES) == after, statement
        before = after
    with house.place.copied(house.log("t")) as table:
        theirs = pa.table(table.load_cdf(starting_version=0).read_all()).to_pylist()
    ours = feed(house, 0, len(STATEMENTS))
    if marking:
        theirs, ours = (without_removal_of_a_marked_file(rows) for rows in (theirs, ours))
    assert plain(ours) == plain(theirs)


@pytest.mark.connect(gate=True)
def test_changes_are_recorded_from_the_version_that_enables_the_feed(house: House) -> None:
    house.sql("create table t as select 1 as id")
    house.sql("alter table t set tblproperties ('delta.enableChangeDataFeed' = 'true')")
    house.sql("update t set id = 2")
    with pytest.raises(ChangeDataNotRecordedError, match="did not record its changes in version 0"):
        feed(house, 0, 2)
    assert [(row["_change_type"], row["id"]) for row in feed(house, 1, 2)] in (
        [("update_preimage", 1), ("update_postimage", 2)],
        [("update_postimage", 2), ("update_preimage", 1)],
    )


def test_bounds_are_versions_or_times(house: House) -> None:
    house.sql(f"create table t (id int) {RECORDING.format(more='')}")
    for number in (1, 2, 3):
        house.sql(f"insert into t values ({number})")
    times = dict(  # type: ignore[var-annotated]
        house.rows("select distinct _commit_version, cast(_commit_timestamp as string) from table_changes('t', 1)")  # type: ignore[arg-type]
    )

    def ids(arguments: str) -> list[object]:
        return [row[0] for row in house.rows(f"select id from table_changes('main.t', {arguments}) c order by c.id")]

    assert ids("2") == ids("1 + 1, 99") == [2, 3]
    assert ids("1, 2") == [1, 2]
    assert ids(f"timestamp'{times[2]}'") == [2, 3]
    assert ids(f"timestamp'{times[2]}', '{times[2]}'") == [2]
    assert ids(f"timestamp'{times[2]}' + interval 1 microsecond") == [3]
    assert ids("'2000-01-01', 3") == [1, 2, 3]
    moment = f"timestamp'{times[2]}' + interval 1 microsecond"
    assert ids(f"{moment}, {moment}") == []
    for arguments, error in (
        ("4", VersionNotFoundError),
        ("'2000-01-01', current_timestamp() + interval 1 day", VersionNotFoundError),
        ("current_timestamp() + interval 1 day", VersionNotFoundError),
        ("3, 2", InvalidStatementError),
        ("null", InvalidStatementError),
    ):
        with pytest.raises(error):
            ids(arguments)


def test_changes_are_read_in_views_joins_and_writes(house: House) -> None:
    house.sql(f"create table t (id int) {RECORDING.format(more='')}")
    house.sql("insert into t values (1), (2)")
    house.sql("create view recent as select id, _change_type from table_changes('t', 0)")
    house.sql("create table seen as select r.id, t.id as now from recent r left join t on r.id = t.id")
    house.sql("delete from t where id = 1")
    assert house.rows("select * from seen") == [(1, 1), (2, 2)]
    assert house.rows("select _change_type, count(*) from recent group by 1") == [("delete", 1), ("insert", 2)]
    path = house.location("t")
    assert house.rows(f"select id from table_changes_by_path('{path}', 2)") == [(1,)]


@pytest.mark.parametrize("mode", ["name", "id"])
def test_the_old_and_new_rows_of_a_mapped_table_that_is_replaced_are_its_changes(house: House, mode: str) -> None:
    properties = RECORDING.format(more=f", 'delta.columnMapping.mode' = '{mode}'")
    create = f"create or replace table t {properties} as select"
    house.sql(f"{create} 1 id, named_struct('a', 'x') s, array(named_struct('b', 1)) l")
    house.sql(f"{create} 2 id, named_struct('a', 'y', 'c', 3) s, array(named_struct('b', 2)) l, 4 more")
    found = house.rows("select id, s.a, s.c, l[0].b, more, _change_type from table_changes('main.t', 1)")
    assert found == [(1, "x", None, 1, None, "delete"), (2, "y", 3, 2, 4, "insert")]
    assert house.rows("select id, s.a from t version as of 0") == [(1, "x")]
    with pytest.raises(UnsupportedStatementError, match="in the same commit as its data"):
        house.sql(f"{create} 3 id, 5 more")


def test_a_table_with_a_change_feed_may_not_have_a_column_of_the_feed(house: House) -> None:
    with pytest.raises(InvalidNameError, match="_commit_version"):
        house.sql(f"create table t (_commit_version int) {RECORDING.format(more='')}")

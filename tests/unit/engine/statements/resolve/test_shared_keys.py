"""Upserts of `silt_changes` by a key that several rows share, and updates to the same value."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator

import pytest

from dbt.adapters.silt.engine.kernel.errors import DataRejectedError
from tests.unit.engine.house import House

KINDS = {
    "plain": "",
    "vectors": "'delta.enableDeletionVectors' = 'true'",
    "ids": "'delta.enableRowTracking' = 'true'",
    "feed": "'delta.enableChangeDataFeed' = 'true'",
    "ids and vectors": "'delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = 'true'",
    "feed and vectors": "'delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true'",
}
EACH_KIND = pytest.mark.parametrize("kind", KINDS)
UPSERTS = "select k, v, _change_type from silt_changes('main.t', after => {}, as => 'upserts', key => 'k')"


def keyed(house: House, kind: str, *rows: str) -> House:
    properties = f"tblproperties ({KINDS[kind]})" if KINDS[kind] else ""
    house.sql(f"create table t (k int, v int) {properties}")
    if rows:
        house.sql(f"insert into t values {', '.join(rows)}")
    return house


@EACH_KIND
@pytest.mark.parametrize("key", ["1", "null"])
@pytest.mark.connect
def test_a_row_that_remains_is_the_newest_of_its_key(house: House, kind: str, key: str) -> None:
    keyed(house, kind, f"({key}, 10)", f"({key}, 11)", "(2, 20)", "(3, 30)")
    house.sql("delete from t where v in (10, 20)")
    value = None if key == "null" else 1
    assert set(house.rows(UPSERTS.format(1))) == {(value, 11, "upsert"), (2, 20, "delete")}


@EACH_KIND
def test_the_row_that_changed_last_is_the_newest_of_its_key(house: House, kind: str) -> None:
    keyed(house, kind, "(1, 10)", "(1, 11)")
    house.sql("update t set v = 12 where v = 10")
    assert house.rows(UPSERTS.format(1)) == [(1, 12, "upsert")]
    house.sql("update t set v = 13 where v = 11")
    assert house.rows(UPSERTS.format(1)) == [(1, 13, "upsert")]
    house.sql("delete from t where v = 13")
    assert house.rows(UPSERTS.format(1)) == [(1, 12, "upsert")]
    house.sql("delete from t")
    assert [row[::2] for row in house.rows(UPSERTS.format(1))] == [(1, "delete")]


@EACH_KIND
@pytest.mark.parametrize(
    "statement",
    [
        "update t set v = v + 5",
        "insert into t values (1, 12), (1, 13)",
        "insert into t values (1, 12), (1, 12)",
        "delete from t where v = 9",
    ],
)
def test_a_key_whose_newest_row_is_unknown_is_refused_by_its_value(house: House, kind: str, statement: str) -> None:
    keyed(house, kind, "(1, 9)", "(1, 10)", "(1, 11)")
    house.sql(statement)
    with pytest.raises(DataRejectedError, match=r'share the key of the upserts: \{"k":1\}.*name columns as the key'):
        house.rows(UPSERTS.format(1))
    assert len(house.rows(UPSERTS.format(1).replace(", as => 'upserts', key => 'k'", ""))) in (1, 2, 6)


@pytest.mark.connect
def test_the_first_rows_are_refused_if_they_share_a_key(house: House) -> None:
    keyed(house, "plain", "(1, 10)", "(1, 11)")
    with pytest.raises(DataRejectedError, match=r'share the key of the upserts: \{"k":1\}'):
        house.warehouse.changes("main.t", key="k").collect()
    with pytest.raises(DataRejectedError, match="share the key of the upserts"):
        house.sql(
            "create table m as select k, v from silt_changes('main.t', consumer => 'm', as => 'upserts', key => 'k')"
        )
    assert house.rows("show tables in main") == [("main", "t", False)]


def test_a_consumer_keeps_a_row_that_its_input_keeps(house: House) -> None:
    keyed(house, "plain", "(1, 11)", "(2, 20)")
    house.sql("create table m as select k, v from silt_changes('main.t', consumer => 'm', as => 'upserts', key => 'k')")
    merging = (
        "merge into m using (select * from silt_changes('main.t', consumer => 'm', as => 'upserts', key => 'k')) s "
        "on m.k <=> s.k when matched and s._change_type = 'delete' then delete when matched then update set v = s.v "
        "when not matched and s._change_type = 'upsert' then insert (k, v) values (s.k, s.v)"
    )
    house.sql("insert into t values (1, 10)")
    house.sql("delete from t where v = 10")
    house.sql(merging)
    assert house.rows("select * from m") == [(1, 11), (2, 20)]
    house.sql("insert into t values (3, 30), (3, 31)")
    with pytest.raises(DataRejectedError, match=r'share the key of the upserts: \{"k":3\}'):
        house.sql(merging)
    house.sql("delete from t where v = 31")
    house.sql(merging)
    assert house.rows("select * from m") == [(1, 11), (2, 20), (3, 30)]


def statements(seed: int) -> Iterator[str]:
    """Random statements; each value is inserted once, so that rows of a version are told apart by their values."""
    draw, value = random.Random(seed), 0
    while True:
        value += 1000
        yield draw.choice(
            [
                f"insert into t values ({draw.randrange(4)}, {value})",
                f"insert into t values ({draw.randrange(4)}, {value}), ({draw.choice(['null', '5'])}, {value + 1})",
                f"delete from t where v % 3 = {draw.randrange(3)} and k < {draw.randrange(1, 5)}",
                f"delete from t where k <=> {draw.choice(['null', '0', '1'])}",
                f"update t set v = v + 1 where v % 5 = {draw.randrange(5)}",
                f"update t set v = v where k = {draw.randrange(4)}",
                "optimize t",
            ]
        )


def expected(states: list[Counter[tuple[object, object]]], after: int) -> Counter[tuple[object, ...]] | None:
    """The upserts, without the values of deleted rows; None if a key has no newest row."""
    last: dict[object, tuple[object, ...] | None] = {}
    for before, now in zip(states[after:], states[after + 1 :], strict=False):
        by_key: dict[object, list[object]] = defaultdict(list)
        for (key, value), times in (now - before).items():
            by_key[key] += [value] * times
        for key in {key for key, _ in (before - now)} | set(by_key):
            kept = by_key[key] or [value for (other, value), n in now.items() for _ in range(n) if other == key]
            last[key] = None if len(kept) > 1 else (key, kept[0], "upsert") if kept else (key, None, "delete")
    return None if None in last.values() else Counter(each for each in last.values() if each is not None)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 9))])
@pytest.mark.parametrize(
    "kind",
    ["plain", "ids and vectors", *(pytest.param(kind, marks=pytest.mark.long) for kind in ("vectors", "ids", "feed"))],
)
def test_upserts_equal_those_of_an_oracle_or_are_refused(house: House, kind: str, seed: int) -> None:
    keyed(house, kind)
    draw = random.Random(seed)
    states: list[Counter[tuple[object, object]]] = [Counter()]
    for _, statement in zip(range(12), statements(seed), strict=False):
        house.sql(statement)
        rows = Counter((key, value) for key, value in house.rows("select k, v from t"))
        states += [rows] * (house.log("t").snapshot().version + 1 - len(states))
        after = draw.randrange(len(states))
        wanted = expected(states, after)
        try:
            found = house.rows(UPSERTS.format(after))
        except DataRejectedError:
            assert wanted is None, (statement, after)
        else:
            assert wanted == Counter((k, None if kind == "delete" else v, kind) for k, v, kind in found), statement


VALUES = "id int, x double, f float, tags map<string, int>, at struct<s: string, l: array<double>>, t timestamp"
ROW = "double('nan'), -0f, map('a', 1), named_struct('s', null, 'l', array(0d)), timestamp'2026-01-01 00:00:00.000001'"
SAME = [
    "update t set x = x where id = 1",
    "update t set x = x + 1, f = f where id = 1",
    "merge into t using (select 1 as id) s on t.id = s.id when matched then update set x = t.x, tags = t.tags",
    "merge into t using (select * from t where id = 1) s on t.id = s.id when matched then update set *",
]


@EACH_KIND
@pytest.mark.parametrize("statement", SAME)
def test_an_update_to_the_same_values_is_no_change(house: House, kind: str, statement: str) -> None:
    properties = f"tblproperties ({KINDS[kind]})" if KINDS[kind] else ""
    house.sql(f"create table t ({VALUES}) {properties}")
    house.sql(f"insert into t values (1, {ROW}), (2, {ROW}), (3, {ROW})")
    house.sql(statement)
    assert house.log("t").snapshot().version == 2
    assert house.rows("select id from silt_changes('main.t', after => 1)") == []
    house.sql("update t set f = 0f, x = 1 where id in (1, 2)")
    changed = house.rows("select distinct id from silt_changes('main.t', after => 1)")
    assert changed == [(1,), (2,)]


@EACH_KIND
@pytest.mark.parametrize(
    "assignment",
    [
        "f = 0f",
        "tags = map('a', 2)",
        "tags = null",
        "at = named_struct('s', null, 'l', array(-0d))",
        "at = named_struct('s', 'null', 'l', array(0d))",
        "t = timestamp'2026-01-01 00:00:00.000002'",
    ],
)
def test_an_update_to_another_value_is_a_change(house: House, kind: str, assignment: str) -> None:
    properties = f"tblproperties ({KINDS[kind]})" if KINDS[kind] else ""
    house.sql(f"create table t ({VALUES}) {properties}")
    house.sql(f"insert into t values (1, {ROW}), (2, {ROW})")
    house.sql(f"update t set {assignment} where id = 1")
    assert house.rows("select id from silt_changes('main.t', after => 1)") == [(1,), (1,)]

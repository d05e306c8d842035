"""Nested views: a statement expands and renders each text once, however often it is named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from dbt.adapters.silt.engine.catalog.names.documents import View
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.statements.resolve import expander, render
from dbt.adapters.silt.engine.statements.resolve.expansion import DEEPEST
from dbt.adapters.silt.engine.statements.resolve.reads import Resolved
from dbt.adapters.silt.engine.statements.resolve.resolve import Resolver
from dbt.adapters.silt.engine.statements.resolve.snapshot_views import SnapshotViews
from tests.unit.engine.house import House


def put(house: House, number: int, query: str) -> None:
    """Stores a view in the catalog without any check."""
    name = RelationName("silt", "main", f"v{number}")
    house.warehouse.catalog.put_view(View(name, query, current_database="silt", current_schema="main"))


def chain(house: House, levels: int, query: str) -> None:
    """Creates a table t of three rows and views v1, v2 ..., each of which reads the relation below it."""
    house.sql("create table t as select id from range(3)")
    for number in range(1, levels + 1):
        put(house, number, query.format(below="t" if number == 1 else f"v{number - 1}"))


def counted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, key: Callable[..., object]) -> Counter[object]:
    """Counts the calls of a function by the key of their arguments."""
    calls: Counter[object] = Counter()
    real = getattr(owner, name)

    def counting(*arguments: Any, **named: Any) -> Any:
        calls[key(*arguments)] += 1
        return real(*arguments, **named)

    monkeypatch.setattr(owner, name, counting)
    return calls


def test_a_view_that_is_named_twice_at_each_level_is_expanded_once(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain(house, 5, "select * from {below} a union all select * from {below} b")
    expanded = counted(monkeypatch, expander.Expander, "query", lambda _, text, *__: text.sql)
    rendered = counted(monkeypatch, render, "rewrite", lambda text, *_: text.sql)
    pinned = counted(monkeypatch, DeltaLog, "snapshot", lambda log: log.name)
    assert house.rows("select count(*) from v5 where id = 1") == [(32,)]
    assert set(expanded.values()) == {1}
    assert len(expanded) == 6
    assert rendered == expanded
    assert set(pinned.values()) == {1}


def test_a_function_that_two_functions_call_is_expanded_once(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.sql("create function one() returns int return 1")
    house.sql("create function two() returns int return one() + one()")
    house.sql("create function three() returns int return one() + two()")
    expanded = counted(monkeypatch, expander.Expander, "query", lambda _, text, *__: text.sql)
    assert house.rows("select three(), two(), one()") == [(3, 2, 1)]
    assert set(expanded.values()) == {1}


def test_the_bytes_read_by_a_view_count_each_time_that_the_view_is_named(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain(house, 2, "select * from {below} a union all select * from {below} b")
    found: list[int] = []
    real = Resolver.resolve

    def noting(*arguments: Any, **named: Any) -> Resolved:
        resolved = real(*arguments, **named)
        found.append(resolved.bytes_read or 0)
        return resolved

    monkeypatch.setattr(Resolver, "resolve", noting)
    for source in ("t", "v2", "v1 union all select * from v2"):
        house.sql(f"select * from {source}")
    once, four, six = found
    assert (four, six) == (4 * once, 6 * once)


def test_equal_view_texts_in_two_schemas_read_different_tables(house: House) -> None:
    for schema, value in (("one", 1), ("two", 2)):
        house.sql(f"create schema {schema}")
        house.sql(f"create table {schema}.t as select {value} as id")
        name = RelationName("silt", schema, "v")
        house.warehouse.catalog.put_view(View(name, "select * from t", current_database="silt", current_schema=schema))
    assert house.rows("select * from one.v union all select * from two.v") == [(1,), (2,)]


def test_temporary_views_with_the_same_text_keep_their_own_columns(house: House) -> None:
    chain(house, 0, "")
    house.sql("create temporary view a (x) as select id from t")
    house.sql("create temporary view b (y) as select id from t")
    assert house.rows("select count(*) from a join b on a.x = b.y") == [(3,)]


def test_views_may_be_nested_to_the_limit(house: House) -> None:
    chain(house, DEEPEST, "select * from {below}")
    assert house.rows(f"select count(id) from v{DEEPEST}") == [(3,)]


@pytest.mark.parametrize("statement", ["select * from v299", "create table made as select * from v299"])
def test_a_longer_chain_is_refused_with_the_name_of_its_first_view(house: House, statement: str) -> None:
    chain(house, 299, "select * from {below}")
    with pytest.raises(UnsupportedStatementError, match=r"silt\.main\.v299: below it, .* more than 100 deep"):
        house.sql(statement)
    assert house.warehouse.catalog.find(RelationName("silt", "main", "made")) is None


def test_a_chain_that_was_expanded_before_counts_with_its_full_depth(house: House) -> None:
    chain(house, DEEPEST + 1, "select * from {below}")
    with pytest.raises(UnsupportedStatementError, match="nested more than 100 deep"):
        house.sql(f"select * from v60 union all select * from v{DEEPEST + 1}")


def test_a_view_that_would_be_nested_too_deeply_is_not_created(house: House) -> None:
    chain(house, DEEPEST, "select * from {below}")
    with pytest.raises(UnsupportedStatementError, match=r"silt\.main\.top: below it"):
        house.sql(f"create view top as select * from v{DEEPEST}")


def test_views_with_too_many_expanded_texts_are_refused_by_name(house: House) -> None:
    chain(house, 40, "select * from {below} a union all select * from {below} b")
    with pytest.raises(UnsupportedStatementError, match=r"silt\.main\.v14: .* has 16,383 parts"):
        house.sql("select * from v40")


def test_a_list_of_columns_leaves_out_views_that_spark_would_analyse_for_long(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    chain(house, 12, "select * from {below} a union all select * from {below} b")
    analysed = counted(monkeypatch, SnapshotViews, "schema", lambda _, query: "v" + str(query.count("union all")))
    listed = {row[0] for row in house.rows("select table_name from information_schema.columns")}
    assert listed == {"t", *(f"v{number}" for number in range(1, 10))}
    assert len(analysed) == 9 and set(analysed.values()) == {1}
    for number in (10, 11, 12):
        assert f"no columns of the view silt.main.v{number}: " in caplog.text

"""Stored texts and the interfaces without SQL: `silt.read`, and the data source, which reads, writes and streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from dbt.adapters.silt import engine as silt
from dbt.adapters.silt.engine.catalog.names.documents import View
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import RelationNotFoundError, SiltError
from tests.security.texts import test_rules as rules
from tests.security.texts import test_stored_code as code
from tests.security.texts import test_stored_paths as paths
from tests.security.texts.test_rules import secret as secret
from tests.security.texts.test_stored_code import marker as marker
from tests.unit.engine.datasource import test_streams as streams
from tests.unit.engine.datasource.tables import Tables, in_order, raises
from tests.unit.engine.house import House

pytestmark = pytest.mark.in_folders("the attacks run processes and read files of this machine")

TEXTS = [*code.SCRIPTS, *code.CALLS, *code.OTHERS, *paths.TEXTS]
KINDS = [code.SCRIPTS[0], code.CALLS[0], "select * from jdbc.`x` with (url = 'jdbc:nothing:')", paths.TEXTS[1]]
OF_RULES = [rules.ATTACKS[0], rules.ATTACKS[5], rules.ATTACKS[-1]]
"""One text of each kind, for interfaces that start a process for each attempt."""
FEW_AND_ALL = pytest.mark.parametrize("all_texts", [False, pytest.param(True, marks=pytest.mark.long)])
"""Whether a text is tried for each interface or kind of rule, or all texts."""

Door = Callable[[Tables, str], object]


def _written(mode: str) -> Door:
    return lambda tables, name: tables.write(tables.query("select 'x' as a"), name, mode)


READS: dict[str, Door] = {
    "rows": lambda tables, name: _read(tables, name),
    "rows of a condition": lambda tables, name: _read(tables, name, where="a is not null"),
    "columns": lambda tables, name: _read(tables, name, columns=["a"]),
    "version": lambda tables, name: _read(tables, name, version=0),
    "batches": lambda tables, name: silt.read_batches(f"main.{name}", str(tables.house.root)).read_all(),
}
OF_DATA_SOURCE: dict[str, Door] = {
    "load": lambda tables, name: tables.read(name).collect(),
    "change feed": lambda tables, name: tables.read(name, readChangeFeed=True, startingVersion=0).collect(),
    "stream": lambda tables, name: streams.stream(tables, name).schema,
    "append": _written("append"),
    "overwrite": _written("overwrite"),
}


def _read(tables: Tables, name: str, **options: Any) -> list[dict[str, object]]:
    return silt.read(f"main.{name}", str(tables.house.root), **options).to_pylist()


@pytest.fixture
def tables(house: House) -> Iterator[Tables]:
    silt.DataSource.register(house.warehouse.spark)
    yield Tables(house)
    code.clear(house)


def stored(house: House, texts: list[str], **places: Path) -> list[str]:
    """Stores views of these texts, as another user would, and a view over each; returns their names."""
    house.sql("create table main.t (id int)")
    names = []
    for number, text in enumerate(texts):
        own = text.format(**places, house=house.root, pattern=house.root, table=house.root, folder=house.root)
        for name, query in ((f"v{number}", own), (f"above{number}", f"select * from main.v{number}")):
            view = View(RelationName("silt", "main", name), query, current_database="silt", current_schema="main")
            house.warehouse.catalog.put_view(view, replace=False)
            names.append(name)
    return names


@pytest.mark.connect
def test_silt_read_opens_no_stored_view_whatever_its_text(tables: Tables, marker: Path, secret: Path) -> None:
    for name in stored(tables.house, TEXTS, marker=marker, secret=secret):
        for door, read in READS.items():
            with pytest.raises(RelationNotFoundError, match=f"SILT_RELATION_NOT_FOUND.*main.{name}.*view"):
                pytest.fail(f"{door}, {name}: {read(tables, name)}")
    assert not code.ran(tables.house, marker)


@pytest.mark.connect
@FEW_AND_ALL
def test_the_data_source_opens_no_stored_view_whatever_its_text(
    tables: Tables, marker: Path, secret: Path, all_texts: bool
) -> None:
    stored_names = stored(tables.house, KINDS, marker=marker, secret=secret)
    names = [*stored_names[::2], stored_names[1]]
    for at, (door, use) in enumerate(OF_DATA_SOURCE.items()):
        for name in names if all_texts else [names[at % len(names)]]:
            with pytest.raises((SiltError, PySparkException), match=r"SILT_RELATION_(NOT_FOUND|EXISTS)") as raised:
                pytest.fail(f"{door}, {name}: {use(tables, name)}")
            assert "view" in str(raised.value), (door, name)
    assert not code.ran(tables.house, marker)


RULES = {
    "default": "`v`, whose default",
    "generated": "generated columns",
    "check": "CHECK constraints",
    "invariant": "invariants",
}
"""Each kind of rule, with the words of the data source's refusal."""


@pytest.mark.connect
@FEW_AND_ALL
@pytest.mark.parametrize(("kind", "words"), RULES.items(), ids=RULES)
def test_the_data_source_refuses_writes_to_tables_whose_rules_it_would_have_to_evaluate(
    tables: Tables, secret: Path, marker: Path, kind: str, words: str, all_texts: bool
) -> None:
    _table_with_a_row(tables.house, with_generated=kind == "generated")
    at = list(RULES).index(kind)
    for attack in OF_RULES if all_texts else [OF_RULES[at % len(OF_RULES)]]:
        rules.rewrite(tables.house, rules.put(kind, attack.format(secret=secret, marker=marker)))
        for mode in ("append", "overwrite") if all_texts else [("append", "overwrite")[at % 2]]:
            with raises("SILT_UNSUPPORTED_FEATURE", words):
                tables.write(tables.query("select 2L as id"), "t", mode)
        assert [row["id"] for row in _read(tables, "t")] == [1]
    assert in_order(tables.read("t", columns="id")) == [(1,)]
    assert not code.ran(tables.house, marker)


@pytest.mark.connect
def test_the_data_source_writes_a_named_column_without_evaluating_its_hostile_default(
    tables: Tables, marker: Path, secret: Path
) -> None:
    _table_with_a_row(tables.house)
    rules.rewrite(tables.house, rules.put("default", rules.ATTACKS[5]))
    tables.write(tables.query("select 2L as id, 'y' as v"), "t")
    assert in_order(tables.read("t")) == [(1, "x"), (2, "y")]
    assert not code.ran(tables.house, marker)


def _table_with_a_row(house: House, with_generated: bool = False) -> None:
    generated = ", g string generated always as (concat('a', id))" if with_generated else ""
    house.sql(
        f"create table t (id bigint, v string default 'x'{generated}) "
        "tblproperties (delta.feature.invariants = 'supported')"
    )
    house.sql("insert into t (id) values (1)")

"""Python functions: stored as code, and run by Spark's workers only if that is allowed."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.kernel.errors import (
    InvalidStatementError,
    StatementSyntaxError,
    UnsupportedStatementError,
)
from dbt.adapters.silt.engine.warehouse import WarehouseSettings
from tests.unit.engine.house import House, opened
from tests.unit.engine.place import Place

CODE = r"""
import math

LETTERS = "it\'s"  # a quote, and a backslash: \\

def root(x, shift):
    return None if x is None else math.sqrt(x) + shift
"""
ROOT = (
    "create function main.root(x double, shift int default 1) returns double comment 'of it' "
    f"language python runtime_version = '3.11' handler = 'root' packages = ('numpy') as '{CODE}'"
)


@pytest.fixture
def trusting(spark: SparkSession, place: Place) -> House:
    settings = WarehouseSettings(python_functions=True)
    return opened(spark, place, settings)


def test_a_warehouses_python_code_is_run_if_it_is_allowed(trusting: House) -> None:
    trusting.sql(ROOT)
    assert trusting.rows("select main.root(4), root('9', shift => 0), root(null, 1)") == [(3.0, 3.0, None)]
    trusting.sql("create table main.t as select id from range(4) where main.root(id) > 2")
    assert trusting.rows("select * from main.t") == [(2,), (3,)]
    trusting.sql("create function main.roots(x double) returns double return main.root(main.root(x, 0), 0)")
    assert trusting.rows("select main.roots(16)") == [(2.0,)]
    described = "\n".join(row[0] for row in trusting.sql("describe function extended main.root").collect())
    assert "PYTHON, handler root" in described
    assert "math.sqrt(x)" in described
    with pytest.raises(InvalidStatementError, match=r"<function silt\.main\.root>"):
        trusting.rows("select main.root(-1)")


def test_python_functions_are_neither_run_nor_created_without_permission(house: House, trusting: House) -> None:
    with pytest.raises(UnsupportedStatementError, match="python_functions: true"):
        house.sql(ROOT)
    trusting.sql(ROOT)
    trusting.sql("create view main.v as select root(4) as x")
    assert trusting.rows("select * from main.v") == [(3.0,)]
    for query in ("select main.root(1)", "select * from main.v"):
        with pytest.raises(UnsupportedStatementError, match="python_functions: true"):
            house.sql(query)
    assert ("silt.main.root",) in house.rows("show user functions in main")
    house.sql("drop function main.root")


def test_replaced_code_is_called_from_then_on(trusting: House) -> None:
    statement = "create or replace function main.f(x int) returns int not deterministic language python handler 'f' as "
    for number in (1, 2):
        trusting.sql(f"{statement} 'def f(x):\n  return x + {number}'")
        assert trusting.rows("select main.f(1)") == [(1 + number,)]


@pytest.mark.parametrize(
    ("clauses", "error"),
    [
        ("returns int language python handler 'g' as 'def f(x): return x'", InvalidStatementError),
        ("returns int language python handler 'f' as 'def f(x) return x'", InvalidStatementError),
        ("returns int language python as 'def f(x): return x'", InvalidStatementError),
        ("language python handler 'f' as 'def f(x): return x'", InvalidStatementError),
        ("returns int language python handler 'f' as def f(x): return x", StatementSyntaxError),
        ("returns int language python handler 'f' return x", StatementSyntaxError),
    ],
)
def test_code_that_cannot_be_called_is_not_stored(trusting: House, clauses: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        trusting.sql(f"create function main.f(x int) {clauses}")
    assert trusting.rows("show user functions in main") == []

"""The law of labels: each row of the query is either committed or quarantined, once, whatever the condition is."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

from dbt.adapters.silt.engine.audits.audit import Audit, Audits, Limit, OnFailure
from dbt.adapters.silt.engine.kernel import errors
from tests.unit.engine.house import House

ROWS = (
    "select id, case when id % 7 = 0 then null when id % 7 = 1 then double('nan') else id - 50.0D end as v, "
    "if(id % 5 = 0, null, cast(id as string)) as word, timestamp_seconds(id) as at from range(0, 120, 1, 4)"
)
ATOMS = (
    *("v < 3", "v = v", "v <> double('nan')", "v is null", "not (v >= 0)", "word > '5'", "word in ('7', null)"),
    *("rand() < 0.5", "uuid() < 'a'", "at > now()", "at < current_timestamp()", "null", "true", "v / 2 > id"),
)
FAILING = "cast(concat(word, 'x') as int) > 1"
Write = Callable[[House, str], None]


def condition(seed: int) -> str:
    """Returns a condition of three parts, at least one of which has another value each time for even seeds."""
    drawn = random.Random(seed)
    parts = [drawn.choice(ATOMS), drawn.choice(ATOMS), "rand() < 0.5" if seed % 2 == 0 else drawn.choice(ATOMS)]
    first, second, third = (drawn.choice(("({})", "not ({})")).format(each) for each in parts)
    return f"({first} {drawn.choice(('and', 'or'))} {second}) {drawn.choice(('and', 'or'))} {third}"


def audited(house: House, predicate: str) -> None:
    audits = Audits(
        (Audit("a", f"select * from main.t where {predicate}"),),
        on_failure=OnFailure.QUARANTINE,
        max_quarantined=Limit(1000),
    )
    house.warehouse.execute(f"insert into t {ROWS}", audits=audits)


def evaluated_twice(house: House, predicate: str) -> None:
    """Separates the rows by two statements, as a program without quarantine would."""
    house.sql(f"create table t__quarantine as select * from ({ROWS}) where {predicate}")
    house.sql(f"insert into t select * from ({ROWS}) where not ({predicate})")


def broken_rows(house: House, write: Write, predicate: str) -> list[object]:
    """Returns the ids of the rows that are in neither table, or more than once."""
    house.sql("create or replace table t (id bigint, v double, word string, at timestamp)")
    house.sql("drop table if exists t__quarantine")
    write(house, predicate)
    tables = ["t"] + (["t__quarantine"] if house.rows("show tables in main like 't__quarantine'") else [])
    found = Counter(row[0] for table in tables for row in house.rows(f"select id from {table}"))
    return [each for each in range(120) if found[each] != 1]


@pytest.mark.parametrize("seed", range(6))
def test_each_row_of_the_query_is_in_one_of_both_tables(house: House, seed: int) -> None:
    assert broken_rows(house, audited, condition(seed)) == []


def test_a_condition_that_fails_for_a_row_writes_no_row(house: House) -> None:
    house.sql("create table t (id bigint, v double, word string, at timestamp)")
    with pytest.raises(errors.InvalidStatementError, match="cannot be evaluated"):
        audited(house, FAILING)
    assert house.rows("select count(*) from t") == [(0,)]
    assert not house.rows("show tables in main like 't__quarantine'")


@pytest.mark.parametrize("predicate", ["rand() < 0.5", "v < 3"])
def test_two_evaluations_of_the_condition_break_the_law(house: House, predicate: str) -> None:
    assert broken_rows(house, evaluated_twice, predicate) != []

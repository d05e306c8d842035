"""With the session's setting, CREATE OR REPLACE TABLE ... AS is skipped while its table holds the rows already."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.errors import InvalidSettingError
from tests.unit.engine.house import House

WRITE = "create or replace table t as select * from raw"


@pytest.fixture
def session(house: House) -> House:
    """A session that reuses tables."""
    other = house.in_one_cut()
    other.sql("create table raw as select id from range(3)")
    other.sql("set silt.reuse = unchanged")
    return other


def written(house: House, text: str = WRITE) -> tuple[int, bool]:
    """Runs the statement, and returns the version that holds its result, and whether it was skipped."""
    row = house.sql(text).first()
    assert row is not None
    return row["version"], row["skipped"]


def test_an_unchanged_statement_is_skipped(session: House) -> None:
    assert written(session) == (0, False)
    assert written(session) == (0, True)
    assert written(session, f"-- again\n{WRITE}") == (0, True)
    session.sql("optimize raw")
    assert written(session) == (0, True)
    session.sql("insert into raw values (7)")
    assert written(session) == (1, False)
    assert session.rows("select count(*) from t") == [(4,)]
    assert written(session, f"{WRITE} where id > 1") == (2, False)


@pytest.mark.parametrize(
    "change",
    [
        "set spark.sql.ansi.enabled = false",
        "set time zone 'Asia/Tokyo'",
        "declare or replace variable silt_x int default 1",
        "set silt.reuse = never",
        "insert into t values (9)",
        "create or replace table raw as select id from range(4)",
    ],
)
def test_a_statement_after_a_change_is_run(session: House, change: str) -> None:
    written(session)
    session.sql(change)
    assert not written(session)[1]


def test_the_same_settings_in_another_session_are_the_same(session: House, house: House) -> None:
    session.sql("set spark.sql.ansi.enabled = false")
    written(session)
    other = house.in_one_cut()
    other.sql("set silt.reuse = unchanged")
    assert not written(other)[1]
    third = house.in_one_cut()
    third.sql("set spark.sql.ansi.enabled = true")
    third.sql("set spark.sql.ansi.enabled = false")
    third.sql("set silt.reuse = unchanged")
    assert not written(third)[1]
    assert written(third)[1]


@pytest.mark.parametrize(
    "text", ["create or replace table t as select rand() as x", "create table if not exists t as select 1"]
)
def test_other_statements_are_run(session: House, text: str) -> None:
    session.sql(text)
    assert not written(session, text)[1]


def test_a_statement_with_a_transaction_is_run(session: House) -> None:
    written(session)
    session.warehouse.sql(WRITE, txn=("load", 1))
    assert session.warehouse.transaction_version("t", "load") == 1


def test_another_value_is_refused(session: House) -> None:
    session.sql("set silt.reuse = sometimes")
    with pytest.raises(InvalidSettingError, match=r"`silt\.reuse` cannot be `sometimes`"):
        session.sql(WRITE)
    assert session.rows("select count(*) from raw") == [(3,)]

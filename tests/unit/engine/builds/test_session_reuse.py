"""With the session's setting, CREATE OR REPLACE TABLE ... AS is skipped while its table holds the rows already."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.catalog.branches.run_branches import BranchedRun
from dbt.adapters.silt.engine.kernel.errors import ConcurrentModificationError, InvalidSettingError
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


SUM = "create or replace table u as select sum(id) as s from t"


@pytest.fixture
def apart(house: House) -> House:
    """A session that reuses tables, and whose statements do not belong together."""
    other = house.another()
    other.sql("create table raw as select id from range(3)")
    other.sql("set silt.reuse = unchanged")
    return other


def in_transaction(house: House, *statements: str, end: str = "commit") -> list[bool]:
    """Runs statements in a transaction, and returns for each whether it was skipped."""
    house.sql("begin")
    done = [bool(house.fetched(each)[0]["skipped"]) for each in statements]
    house.sql(end)
    return done


def test_tables_that_a_transaction_has_built_are_skipped_until_an_input_changes(apart: House) -> None:
    assert in_transaction(apart, WRITE, SUM) == [False, False]
    assert in_transaction(apart, WRITE, SUM) == [True, True]
    assert written(apart) == (0, True) and written(apart, SUM) == (0, True)
    apart.sql("insert into raw values (7)")
    assert in_transaction(apart, WRITE, SUM) == [False, False]
    assert in_transaction(apart, WRITE, SUM) == [True, True]
    assert apart.rows("select s from u") == [(10,)]


def test_a_transaction_builds_what_its_own_statements_have_changed(apart: House) -> None:
    in_transaction(apart, WRITE, SUM)
    assert in_transaction(apart, "insert into raw values (7)", WRITE, SUM, WRITE) == [False, False, False, True]
    assert apart.rows("select s from u") == [(10,)]
    assert in_transaction(apart, "delete from t where id = 7", WRITE, SUM) == [False, False, False]
    assert apart.rows("select s from u") == [(10,)]


def test_a_build_that_is_rolled_back_is_not_recorded(apart: House) -> None:
    assert in_transaction(apart, WRITE, end="rollback") == [False]
    assert in_transaction(apart, WRITE) == [False]


@pytest.mark.parametrize("change", ["insert into raw values (9)", "delete from t where id = 0"])
def test_a_transaction_has_read_what_a_skipped_build_depends_on(apart: House, house: House, change: str) -> None:
    written(apart)
    apart.sql("create table log (n int)")
    apart.sql("begin")
    assert apart.fetched(WRITE)[0]["skipped"]
    apart.sql("insert into log values (1)")
    house.sql(change)
    with pytest.raises(ConcurrentModificationError, match="raw" if "raw" in change else r"main\.t"):
        apart.sql("commit")
    assert not apart.rows("select * from log")


def test_a_transaction_in_python_knows_what_has_changed_its_session(apart: House) -> None:
    with apart.warehouse.transaction() as together:
        together.sql(WRITE)
    with apart.warehouse.transaction() as together:
        assert together.sql(WRITE).collect()[0].skipped
        together.sql("declare or replace variable silt_x int default 1")
        assert not together.sql(WRITE).collect()[0].skipped
    with apart.warehouse.transaction() as together:
        assert not together.sql(WRITE).collect()[0].skipped
    assert not written(apart)[1]


def test_a_transaction_with_an_identifier_records_it_in_each_table(apart: House) -> None:
    for load in (1, 2):
        with apart.warehouse.transaction(txn=("load", load)) as together:
            assert not together.sql(WRITE).collect()[0].skipped
    assert apart.warehouse.transaction_version("t", "load") == 2
    assert written(apart)[1]


def test_a_session_on_the_branch_of_a_run_skips_what_the_branch_holds(apart: House, house: House) -> None:
    other = house.another().warehouse
    runs = other.catalog.run_branches("silt")
    run, branch = runs.open(BranchedRun("shop", "dev", "monday"))
    other.for_session(other.spark, branch=branch).sql("insert into raw values (7)")
    apart.sql("set silt.branch = 'monday'")
    assert [apart.fetched(WRITE)[0]["skipped"] for _ in range(2)] == [False, True]
    apart.sql("reset silt.branch")
    runs.publish(run, branch)
    assert written(apart)[1] and apart.rows("select count(*) from t") == [(4,)]

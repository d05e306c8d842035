"""`set silt.branch` lets a session read and write through the branch of a run."""

from __future__ import annotations

import pytest

from dbt.adapters.silt import engine as silt
from dbt.adapters.silt.engine.catalog.branches.attempts import BranchAttempts
from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.branches.run_branches import BranchedRun, RunBranches
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel import errors
from tests.unit.engine.house import House

RUN = BranchedRun("shop", "dev", "monday's run")
ORDERS = RelationName("silt", "main", "orders")
SET = 'set silt.branch = "monday\'s run"'


@pytest.fixture
def shop(house: House) -> House:
    house.sql("create table orders as select 1 as id")
    return house


def begun(house: House) -> tuple[RunBranches, BranchedRun, Branch]:
    """Begins the run in another process, which inserts the row 2 on its branch."""
    other = house.another().warehouse
    runs = other.catalog.run_branches("silt")
    run, branch = runs.open(RUN)
    other.for_session(other.spark, branch=branch).sql("insert into orders values (2)")
    return runs, run, branch


@pytest.mark.connect(gate=True)
def test_a_session_reads_and_writes_through_the_branch_until_it_is_reset(shop: House) -> None:
    runs, run, branch = begun(shop)
    session = shop.another()
    session.sql(SET)
    assert session.rows("select id from orders") == [(1,), (2,)]
    session.sql("insert into orders values (3)")
    session.sql("create view doubled as select id * 2 as id from orders")
    session.sql("create table more as select max(id) as id from doubled")
    assert shop.rows("select id from orders") == [(1,)]
    session.sql("reset silt.branch")
    assert session.rows("select id from orders") == [(1,)]
    runs.publish(run, branch)
    assert session.rows("select id from orders") == [(1,), (2,), (3,)]
    assert shop.rows("select id from more") == [(6,)] and len(shop.rows("select * from doubled")) == 3


def test_another_session_of_the_same_program_works_on_the_branch(shop: House) -> None:
    begun(shop)
    session = shop.another()
    session.sql(SET)
    again = session.in_one_cut()
    again.sql("insert into orders values (3)")
    assert again.rows("select id from orders") == session.rows("select id from orders") == [(1,), (2,), (3,)]
    assert shop.rows("select id from orders") == [(1,)]


@pytest.mark.parametrize("end", ["publish", "drop"])
def test_a_session_is_told_that_its_run_has_ended(shop: House, end: str) -> None:
    runs, run, branch = begun(shop)
    session = shop.another()
    session.sql(SET)
    getattr(runs, end)(run, branch)
    for statement in ("select * from orders", "insert into orders values (9)", "create view v as select 1"):
        with pytest.raises(errors.ConcurrentModificationError, match="`reset silt"):
            session.sql(statement)
    with pytest.raises(errors.RunNotFoundError):
        session.sql(SET)
    session.sql("reset")
    assert session.rows("select id from orders") == ([(1,), (2,)] if end == "publish" else [(1,)])


def test_a_change_whose_run_ends_meanwhile_is_reported_as_unknown(shop: House, monkeypatch: pytest.MonkeyPatch) -> None:
    runs, run, branch = begun(shop)
    session = shop.another()
    session.sql(SET)
    check, calls = BranchAttempts.check_open, []

    def checked(joined: BranchAttempts) -> None:
        calls.append(joined)
        if len(calls) == 2:
            runs.publish(run, branch)
        check(joined)

    monkeypatch.setattr(BranchAttempts, "check_open", checked)
    with pytest.raises(errors.CommitStateUnknownError, match="may or may not"):
        session.sql("insert into orders values (3)")
    assert shop.rows("select id from orders") == [(1,), (2,), (3,)]


def test_settings_that_cannot_be_are_refused(shop: House) -> None:
    begun(shop)
    session = shop.another()
    with pytest.raises(errors.RunNotFoundError, match="`tuesday`"):
        session.sql("set silt.branch = tuesday")
    session.sql("begin")
    with pytest.raises(errors.InvalidStatementError, match="a transaction is open"):
        session.sql(SET)
    session.sql("rollback")
    session.sql(SET)
    for statement in ("begin", "commit"):
        with pytest.raises(errors.InvalidStatementError, match="run"):
            session.sql(statement)
    assert session.rows("select id from orders") == [(1,), (2,)]


def test_the_rows_of_a_run_are_read_without_spark(shop: House) -> None:
    begun(shop)
    place = shop.place.location
    assert silt.read("main.orders", place, branch="monday").column("id").to_pylist() in ([1, 2], [2, 1])
    assert silt.read("main.orders", place).column("id").to_pylist() == [1]
    with pytest.raises(errors.RunNotFoundError, match="`tuesday`"):
        silt.read("main.orders", place, branch="tuesday")
    with pytest.raises(errors.InvalidArgumentError, match="by its path"):
        silt.read(shop.location("orders"), branch="monday")


def test_a_session_that_is_read_only_at_a_run_reads_its_branch_and_changes_nothing(shop: House) -> None:
    runs, run, branch = begun(shop)
    other = shop.another().warehouse
    before = {each.path for each in other.catalog.table(ORDERS).store.files_below("")}
    reading = other.for_session(other.spark, branch=branch, is_read_only=True)
    assert reading.sql("select count(*) from orders").collect()[0][0] == 2
    reading.sql("create temporary view doubled as select id * 2 as id from orders")
    assert reading.sql("select max(id) from doubled").collect()[0][0] == 4
    changes = (
        "insert into orders values (3)",
        "create table more as select 1 as id",
        "create view v as select 1 as id",
    )
    for statement in (*changes, "drop table orders", "create schema other", "optimize orders", "vacuum orders"):
        with pytest.raises(errors.UnsupportedStatementError, match=r"only shows it.*set silt\.branch"):
            reading.sql(statement)
    assert {each.path for each in other.catalog.table(ORDERS).store.files_below("")} == before
    with pytest.raises(errors.InvalidStatementError, match="belong to a run"):
        reading.sql(SET)
    assert runs.publish(run, branch) == {"silt.main.orders": 1}
    with pytest.raises(errors.ConcurrentModificationError, match="Leave `--run` out"):
        reading.sql("select count(*) from orders")

"""`df.write.format("silt")` and `Warehouse.write` write on the branch of a run, as a session's SQL does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.branches.run_branches import BranchedRun, RunBranches
from dbt.adapters.silt.engine.datasource import part_files
from dbt.adapters.silt.engine.datasource.options import Options
from dbt.adapters.silt.engine.datasource.write_plan import Asked
from dbt.adapters.silt.engine.datasource.writers import Finished
from dbt.adapters.silt.engine.kernel import errors
from tests.unit.engine.datasource.tables import FEED, Tables, in_order, raises
from tests.unit.engine.house import House

RUN = BranchedRun("shop", "dev", "monday")


@pytest.fixture
def shop(tables: Tables) -> Tables:
    sql = tables.house.sql
    sql("create table main.orders (id bigint, part int) partitioned by (part)")
    sql("insert into main.orders values (1, 1), (2, 2)")
    return tables


def begun(house: House) -> tuple[RunBranches, BranchedRun, Branch]:
    """Begins the run in another process, which inserts the row 3 on its branch."""
    other = house.another().warehouse
    runs = other.catalog.run_branches("silt")
    run, branch = runs.open(RUN)
    other.for_session(other.spark, branch=branch).sql("insert into main.orders values (3, 2)")
    return runs, run, branch


@pytest.mark.connect
def test_rows_are_appended_and_replaced_on_the_branch_and_published_with_the_run(shop: Tables) -> None:
    runs, run, branch = begun(shop.house)
    shop.write(shop.query("select 4L as id, 1 as part"), "orders", branch="monday", txnAppId="load", txnVersion=1)
    shop.write(shop.query("select 4L as id, 1 as part"), "orders", branch="monday", txnAppId="load", txnVersion=1)
    assert in_order(shop.read("orders", branch="monday")) == [(1, 1), (2, 2), (3, 2), (4, 1)]
    replaced = {"partitionOverwriteMode": "dynamic", "branch": "mond"}
    shop.write(shop.query("select 5L as id, 2 as part"), "orders", "overwrite", **replaced)
    assert in_order(shop.read("orders", branch="monday")) == [(1, 1), (4, 1), (5, 2)]
    shop.write(
        shop.query("select 6L as id, 1 as part"), "orders", "overwrite", replaceWhere="part = 1", branch="monday"
    )
    shop.write(shop.query("select 1L as id"), "made", branch="monday")
    shop.write(shop.query("select 2L as id"), "made", branch="monday")
    assert in_order(shop.read("orders")) == [(1, 1), (2, 2)]
    assert [row.tableName for row in shop.house.fetched("show tables in main")] == ["orders"]
    runs.publish(run, branch)
    assert in_order(shop.read("orders")) == shop.house.rows("select * from main.orders") == [(5, 2), (6, 1)]
    assert in_order(shop.read("made")) == [(1,), (2,)]
    shop.write(shop.query("select 7L as id"), "made", "overwrite")
    assert shop.house.rows("select * from main.made") == [(7,)]


@pytest.mark.in_folders("it lists the files of the folders")
def test_writes_that_cannot_be_on_the_branch_are_refused_before_anything_is_written(shop: Tables) -> None:
    shop.house.sql(f"create table main.recorded (id bigint) {FEED}")
    shop.house.sql("create view main.shown as select 1L as id")
    runs, run, branch = begun(shop.house)
    one, path = shop.query("select 1L as id"), str(shop.house.root / "main" / "recorded")
    shop.write(one, "recorded", branch="monday")
    session = shop.house.another()
    session.sql("set silt.branch = monday")
    session.sql("create table main.gone as select 1L as id")
    before = files(shop)
    with raises("SILT_RELATION_EXISTS", "view"):
        shop.write(one, "shown", branch="monday")
    with raises("SILT_RUN_NOT_FOUND", "tuesday"):
        shop.write(one, "recorded", branch="tuesday")
    with raises("SILT_INVALID_ARGUMENT", "no branch"):
        one.write.format("silt").mode("append").options(**shop.options(branch="monday")).save(path)
    with raises("SILT_COLUMN_NOT_FOUND"):
        shop.write(one, "orders", "overwrite", branch="monday", replaceWhere="missing = 1")
    assert {path for path in files(shop) - before if not path.endswith(".joined")} == set()
    runs.drop(run, branch)
    with raises("SILT_RUN_NOT_FOUND"):
        shop.write(one, "recorded", branch="monday")


def files(tables: Tables) -> set[str]:
    return {str(path) for path in tables.house.root.rglob("*") if path.is_file() and path.name != ".silt.lock"}


def test_a_stream_is_not_written_on_a_branch(shop: Tables) -> None:
    begun(shop.house)
    stream = shop.house.warehouse.spark.readStream.format("silt").options(**shop.options()).load("main.orders")
    writer = stream.writeStream.format("silt").options(**shop.options(branch="monday", txnAppId="copy"))
    with raises("SILT_INVALID_ARGUMENT", "foreachBatch"):
        writer.option("checkpointLocation", str(shop.house.root / "checkpoint")).start("main.copied").awaitTermination()


class Job:
    """A write of one task on the branch, called step by step as Spark calls it."""

    def __init__(self, tables: Tables, table: str) -> None:
        rows = tables.query("select 9L as id, 9 as part")
        self.asked = Asked(Options.of(tables.options(path=f"main.{table}", branch="monday")), overwrite=False)
        self.plan = self.asked.plan(rows.schema)
        part_files.begin(self.plan)
        self.done = part_files.write(self.plan, rows.toArrow().to_batches())

    def commit(self) -> None:
        Finished(self.asked, self.plan, [self.done], ("WRITE", {})).commit()


@pytest.mark.in_folders("it opens the warehouse in this process")
@pytest.mark.parametrize("table", ["orders", "made"])
@pytest.mark.parametrize("end", ["publish", "drop"])
def test_a_run_that_ends_while_files_are_written_gets_no_change(shop: Tables, table: str, end: str) -> None:
    runs, run, branch = begun(shop.house)
    job = Job(shop, table)
    getattr(runs, end)(run, branch)
    before = shop.house.rows("select * from main.orders")
    with pytest.raises(errors.RunNotFoundError):
        job.commit()
    assert shop.house.rows("select * from main.orders") == before
    assert "made" not in {row.tableName for row in shop.house.fetched("show tables in main")}
    assert not [path for path in files(shop) if job.plan.folder in path]


@pytest.mark.in_folders("it opens the warehouse in this process")
@pytest.mark.parametrize("table", ["orders", "made"])
def test_a_run_that_ends_at_the_commit_makes_it_unknown_whether_it_has_the_change(
    shop: Tables, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, run, branch = begun(shop.house)
    job = Job(shop, table)
    publish: Callable[[], object] = lambda: runs.publish(run, branch)  # noqa: E731
    commit = Finished._settings.fget  # type: ignore[attr-defined]

    def settings(finished: Finished) -> object:
        publish()
        return commit(finished)

    monkeypatch.setattr(Finished, "_settings", property(settings))
    with pytest.raises((errors.CommitStateUnknownError, errors.ConcurrentModificationError)):
        job.commit()
    assert shop.house.rows("select count(*) from main.orders where part = 9") == [(0,)]


def test_rows_of_a_data_frame_are_written_through_the_setting_of_a_session(shop: Tables) -> None:
    runs, run, branch = begun(shop.house)
    session = shop.house.another()
    session.sql("set silt.branch = monday")
    one = session.warehouse.spark.sql("select 9L as id, 9 as part")
    session.warehouse.write(one, "main.orders")
    session.warehouse.write(
        one.selectExpr("8L as id", "2 as part"), "main.orders", mode="overwrite", replace_where="part = 2"
    )
    session.warehouse.write(one, "main.made", mode="error")
    session.warehouse.write(
        one.selectExpr("id", "part", "1 as more"), "main.made", mode="overwrite", overwrite_schema=True
    )
    session.sql("drop table main.made")
    session.warehouse.write(one.selectExpr("10L as id"), "main.made")
    assert shop.house.rows("select * from main.orders") == [(1, 1), (2, 2)]
    runs.publish(run, branch)
    assert shop.house.rows("select * from main.orders") == [(1, 1), (8, 2), (9, 9)]
    assert shop.house.rows("select * from main.made") == [(10,)]
    with pytest.raises(errors.ConcurrentModificationError, match="`reset silt"):
        session.warehouse.write(one, "main.orders")

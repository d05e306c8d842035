"""Clients of PySpark run statements and plans through the endpoint, each once, with the names of its warehouse."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from tests.unit.endpoint.connect import programs
from tests.unit.endpoint.connect.programs import Program, versions

MERGE = """
merge into main.orders t using (select * from values (2L, 7), (3L, 8) as s(id, amount)) s on t.id = s.id
when matched then update set amount = s.amount
when not matched then insert (id, amount) values (s.id, s.amount)
"""


@pytest.fixture(autouse=True)
def orders(client: Program) -> None:
    client.run("""spark.sql("create or replace table main.orders (id bigint, amount decimal(12, 2))")""")
    client.run("""spark.sql("insert into main.orders values (1, 9.5), (2, 3)")""")


def test_a_merge_is_committed_once_and_returns_its_counts(client: Program, folder: Path) -> None:
    before = versions(folder, "orders")
    [row] = client.run(f"[row.asDict() for row in spark.sql('''{MERGE}''').collect()]")
    assert versions(folder, "orders") == before + 1
    assert (row["operation"], row["num_inserted_rows"], row["num_updated_rows"]) == ("MERGE", 1, 1)
    assert client.run("rows(spark.table('main.orders'))") == [[1, "9.50"], [2, "7.00"], [3, "8.00"]]


def test_the_rows_of_a_statement_can_be_read_again_without_running_it_again(client: Program, folder: Path) -> None:
    before = versions(folder, "orders")
    client.run("done = spark.sql('delete from main.orders where id = 2')")
    assert client.run("[done.first().num_deleted_rows, done.count(), len(done.columns)]") == [1, 1, 7]
    assert versions(folder, "orders") == before + 1


def test_a_query_is_bound_to_the_rows_of_its_moment_and_a_table_is_not(client: Program) -> None:
    client.run("query, table = spark.sql('select id from main.orders'), spark.table('main.orders').select('id')")
    client.run("spark.sql('insert into main.orders values (9, 9)')")
    assert client.run("rows(query)") == client.run("rows(query)") == [[1], [2]]
    assert client.run("rows(table)") == [[1], [2], [9]]


def test_a_query_whose_rows_are_no_longer_kept_fails_instead_of_reading_others(
    client: Program, endpoint: Program
) -> None:
    client.run("old = spark.sql('select id from main.orders')")
    endpoint.run("from dbt.adapters.silt.engine.statements.resolve import snapshot_views as views")
    endpoint.run("kept, views._KEPT_VIEWS = views._KEPT_VIEWS, 1")
    for number in (7, 8):
        client.run(f"spark.sql('insert into main.orders values ({number}, 0)'); spark.table('main.orders').count()")
    endpoint.run("views._KEPT_VIEWS = kept")
    assert "no longer keeps the versions" in client.run("failure(lambda: old.collect())[3]")
    assert client.run("rows(spark.sql('select id from main.orders'))") == [[1], [2], [7], [8]]


def test_a_query_calls_functions_of_the_warehouse(client: Program) -> None:
    client.run("spark.sql('create function main.twice(x int) returns int return x * 2')")
    client.run("spark.sql('create function main.least() returns bigint return select min(id) from main.orders')")
    client.run("query = spark.sql('select twice(2) as a, main.least() as b')")
    assert client.run("rows(query)") == [[4, 1]]
    client.run("spark.sql('delete from main.orders where id = 1')")
    assert client.run("rows(query)") == [[4, 1]]
    assert client.run("rows(spark.table('main.orders').selectExpr('main.twice(1)', 'main.least()'))") == [[2, 2]]
    client.run("[spark.sql(f'drop function main.{name}') for name in ('twice', 'least')] and None")


def test_plans_read_tables_at_one_moment_wherever_they_name_them(client: Program) -> None:
    client.run("""spark.sql("create or replace table main.names (id bigint, name string)")""")
    client.run("""spark.sql("insert into main.names values (1, 'a'), (2, 'b')")""")
    joined = """
    spark.table("names")
        .join(spark.sql("select id as other from main.orders where amount > 5"), F.col("id") == F.col("other"))
        .union(spark.read.table("silt.main.names").withColumn("other", F.lit(0)))
    """
    assert client.run(f"rows(({joined}))") == [[1, "a", 0], [1, "a", 1], [2, "b", 0]]
    assert client.run("spark.table('main.orders').schema.simpleString()") == "struct<id:bigint,amount:decimal(12,2)>"
    assert client.run("rows(spark.table('main.orders').filter('id in (select id from main.names)').select('id'))") == [
        [1],
        [2],
    ]


def test_earlier_versions_are_read_by_the_options_of_delta(client: Program) -> None:
    version = client.run("spark.sql('delete from main.orders').first().version")
    read = f"spark.read.option('versionAsOf', {version - 1}).table('main.orders')"
    assert client.run(f"[spark.table('main.orders').count(), {read}.count()]") == [0, 2]


def test_arguments_take_the_places_of_parameters_in_queries_and_in_changes(client: Program, folder: Path) -> None:
    before = versions(folder, "orders")
    client.run("spark.sql('update main.orders set amount = ? where id = ?', [11.25, 1])")
    assert versions(folder, "orders") == before + 1
    query = "select amount from main.orders where id = :id and ':id' <> '?'"
    assert client.run(f"rows(spark.sql({query!r}, {{'id': 1}}))") == [["11.25"]]
    assert client.run(
        "rows(spark.sql('select o.id from {df} d join main.orders o using (id)', df=spark.range(2)))"
    ) == [[1]]


def test_execute_immediate_runs_each_kind_of_statement_once(client: Program, folder: Path) -> None:
    before = versions(folder, "orders")
    client.run("spark.sql('declare or replace variable least int default 1')")
    client.run("spark.sql('set variable least = least + 1')")
    client.run("spark.sql('execute immediate \"delete from main.orders where id = \" || least')")
    assert versions(folder, "orders") == before + 1
    query = "execute immediate 'select id + ' || least || ' as n from main.orders'"
    assert client.run(f"rows(spark.sql({query!r}))") == [[3]]
    client.run(f"spark.sql({query!r}).createOrReplaceTempView('seen')")
    assert client.run("rows(spark.table('seen').selectExpr('n + 1'))") == [[4]]
    client.run("spark.sql('drop temporary variable least')")


def test_execute_immediate_of_a_run_is_the_unit_of_the_statement_in_it(client: Program, folder: Path) -> None:
    before = versions(folder, "orders")
    client.run("first, again = connected(), connected()")
    client.run("for each in (first, again): each.conf.set('silt.run_id', 'immediate-1')")
    insert = "insert into main.orders values (6, 6)"
    assert client.run(f"first.sql('execute immediate \"{insert}\"').first().skipped") is False
    assert client.run(f"again.sql('{insert}').first().skipped") is True
    assert versions(folder, "orders") == before + 1


def test_dataframes_are_written_by_each_writer_in_one_commit(client: Program, folder: Path) -> None:
    client.run("new = spark.range(2).withColumn('x', F.lit('a'))")
    for step, write in enumerate(
        (
            "new.write.saveAsTable('main.written')",
            "new.write.mode('append').saveAsTable('main.written')",
            "new.write.insertInto('main.written')",
            "new.writeTo('main.written').append()",
            "new.filter('id = 1').writeTo('main.written').overwrite(F.col('id') == 1)",
            "new.alias('s').mergeInto('main.written', F.expr('written.id = s.id')).whenMatched().delete().merge()",
            "new.writeTo('main.written').createOrReplace()",
        )
    ):
        client.run(write)
        assert versions(folder, "written") == step + 1, write
    assert client.run("rows(spark.table('main.written'))") == [[0, "a"], [1, "a"]]


def test_a_program_that_names_parquet_gets_delta_tables_if_its_session_says_so(client: Program) -> None:
    writes = (
        "spark.sql('create table main.p1 using parquet as select 1 as id')",
        "spark.sql('create table main.p2 like main.orders using orc')",
        "spark.range(1).write.format('parquet').saveAsTable('main.p3')",
        "spark.range(1).writeTo('main.p4').using('parquet').create()",
        "spark.catalog.createTable('main.p5', source='parquet', schema=spark.range(1).schema)",
    )
    for write in writes:
        assert "`set silt.file_format = delta`" in client.run(f"failure(lambda: {write})")[3], write
    client.run("spark.conf.set('silt.file_format', 'delta')")
    for number, write in enumerate(writes, 1):
        client.run(f"done = {write}")
        detail = f"spark.sql('describe detail main.p{number}').first().format"
        assert client.run(detail) == "delta"
    told = client.run("failure(lambda: spark.sql('create table main.p6 (id int) using jdbc'))")[3]
    assert "[SILT_UNSUPPORTED_STATEMENT]" in told
    client.run("spark.conf.set('silt.file_format', 'orc')")
    told = client.run("failure(lambda: spark.sql('create table main.p6 (id int) using orc'))")[3]
    assert "[SILT_INVALID_SETTING]" in told


def test_dataframes_create_clustered_tables(client: Program) -> None:
    client.run("new = spark.range(2).withColumn('place', F.struct(F.lit('a').alias('city')))")
    client.run("new.write.clusterBy('id').saveAsTable('main.by_id')")
    client.run("new.writeTo('main.by_city').clusterBy('place.city', 'id').create()")
    for table, columns in (("by_id", ["id"]), ("by_city", ["place.city", "id"])):
        query = f"spark.sql('describe detail main.{table}').first().clusteringColumns"
        assert client.run(query) == columns


def test_a_merge_of_a_dataframe_evaluates_its_conditions_and_assignments(client: Program) -> None:
    client.run(
        """
source = spark.createDataFrame([(1, 5), (2, 6), (4, 7)], "id bigint, amount int").alias("s")
(source.mergeInto("main.orders", F.expr("orders.id = s.id"))
    .whenMatched(F.col("s.amount") > 5).update({"amount": F.col("s.amount") + F.lit(1)})
    .whenMatched().delete()
    .whenNotMatched().insert({"id": F.col("s.id"), "amount": F.col("s.amount")})
    .merge())
"""
    )
    assert client.run("rows(spark.table('main.orders'))") == [[2, "7.00"], [4, "7.00"]]


def test_temporary_views_belong_to_a_session(client: Program) -> None:
    client.run("other = connected()")
    client.run("spark.table('main.orders').createOrReplaceTempView('seen')")
    client.run("other.sql('create temporary view seen as select 5 as id')")
    assert client.run("[spark.table('seen').count(), rows(other.table('seen'))]") == [2, [[5]]]
    assert client.run("[spark.catalog.dropTempView('seen'), spark.catalog.dropTempView('seen')]") == [True, False]
    assert client.run("rows(other.sql('select * from seen'))") == [[5]]


def test_a_view_by_sql_and_a_view_of_a_dataframe_replace_each_other(client: Program) -> None:
    client.run("spark.sql('create or replace temporary view v as select id from main.orders')")
    client.run("spark.range(7, 8).createOrReplaceTempView('v')")
    assert client.run("rows(spark.table('v'))") == [[7]]
    client.run("spark.sql('create or replace temporary view v as select id from main.orders')")
    assert client.run("rows(spark.table('v'))") == [[1], [2]]


def test_calls_of_the_catalog_are_about_the_warehouse(client: Program) -> None:
    client.run("spark.sql('create or replace view main.big as select * from main.orders where amount > 5')")
    tables = client.run("[[t.name, t.tableType] for t in spark.catalog.listTables('main', '*')]")
    assert ["big", "VIEW"] in tables
    assert ["orders", "MANAGED"] in tables
    assert client.run("[spark.catalog.currentCatalog(), spark.catalog.currentDatabase()]") == ["silt", "main"]
    assert client.run("[spark.catalog.tableExists(n) for n in ('main.orders', 'orders', 'main.nothing', 'x.y')]") == [
        *(True, True),
        *(False, False),
    ]
    assert client.run("[[c.name, c.dataType] for c in spark.catalog.listColumns('main.orders')]") == [
        ["id", "bigint"],
        ["amount", "decimal(12,2)"],
    ]
    assert client.run("spark.catalog.getTable('silt.main.orders').name") == "orders"
    assert "more than three parts" in client.run("failure(lambda: spark.catalog.getTable('a.silt.main.orders'))")[3]
    client.run("spark.sql('create schema if not exists other')")
    client.run("spark.catalog.setCurrentDatabase('other')")
    assert client.run("[d.name for d in spark.catalog.listDatabases()]") == ["main", "other"]
    assert client.run("spark.catalog.tableExists('orders')") is False
    client.run("spark.catalog.setCurrentDatabase('main')")


def test_errors_are_exceptions_of_pyspark_with_sqlstate_and_remedy(client: Program) -> None:
    kind, condition, state, text = client.run("failure(lambda: spark.table('main.nothing').collect())")
    assert (kind, condition, state) == ("AnalysisException", "TABLE_OR_VIEW_NOT_FOUND", "42P01")
    assert "[SILT_RELATION_NOT_FOUND] silt.main.nothing: the table or view does not exist" in text
    kind, _, state, _ = client.run("failure(lambda: spark.sql('select 1 +'))")
    assert (kind, state) == ("ParseException", "42601")
    kind, condition, state, _ = client.run("failure(lambda: spark.sql('select 1 / 0').collect())")
    assert (kind, condition, state) == ("ArithmeticException", "DIVIDE_BY_ZERO", "22012")
    long = client.run("failure(lambda: spark.sql('select * from main.' + 'x' * 20_000))")
    assert long[0] == "AnalysisException"


def test_a_plan_of_many_steps_passes(client: Program) -> None:
    client.run("deep = spark.table('main.orders')")
    client.run("for number in range(120): deep = deep.withColumn(f'c{number}', F.lit(number))")
    assert client.run("[len(deep.columns), deep.count()]") == [122, 2]


def test_a_large_plan_that_the_client_compresses_passes(client: Program) -> None:
    many = "spark.table('main.orders').filter(F.col('id').isin(*range(30_000)))"
    assert client.run(f"{many}.count()") == 2


def test_spark_is_not_told_of_each_answer_that_a_client_has(client: Program, endpoint: Program) -> None:
    endpoint.run("from dbt.adapters.silt.endpoint.connect.backend import Backend; told, kept = [], Backend.pass_on")
    endpoint.run(
        """
def noted(self, method, raw, context):
    told.append(method.path.rpartition("/")[2])
    return kept(self, method, raw, context)
Backend.pass_on = noted
"""
    )
    assert client.run("spark.range(3_000_000).toArrow().num_rows") == 3_000_000
    endpoint.run("Backend.pass_on = kept")
    assert endpoint.run("told.count('ReleaseExecute')") <= 1  # at the end


def test_a_statement_of_the_same_run_is_applied_once_whichever_session_sends_it(client: Program, folder: Path) -> None:
    client.run("first, again = connected(), connected()")
    client.run("for each in (first, again): each.conf.set('silt.run_id', 'nightly-42')")
    before = versions(folder, "orders")
    assert client.run("first.sql('insert into main.orders values (5, 5)').first().skipped") is False
    assert client.run("again.sql('insert into main.orders values (5, 5)').first().skipped") is True
    assert versions(folder, "orders") == before + 1


def test_a_transaction_of_a_session_is_seen_by_no_other_before_its_end(client: Program) -> None:
    client.run("other = connected(); spark.sql('begin'); spark.sql('delete from main.orders')")
    assert client.run("[spark.table('main.orders').count(), other.table('main.orders').count()]") == [0, 2]
    client.run("spark.sql('rollback')")
    assert client.run("spark.table('main.orders').count()") == 2


def test_a_client_that_is_killed_during_a_merge_leaves_it_applied_once(
    endpoint: Program, cache: Path, folder: Path, client: Program
) -> None:
    before = versions(folder, "orders")
    killed = programs.client(endpoint, cache)
    killed.run("spark.range(1).collect()")
    killed.begin(f"spark.sql('''{MERGE}''')")
    _wait(endpoint, "len(running()) == 1")
    killed.kill()
    _wait(endpoint, "not running()")
    assert versions(folder, "orders") == before + 1
    assert client.run("spark.table('main.orders').count()") == 3


def test_a_statement_is_stopped_by_its_client_and_commits_nothing(
    client: Program, endpoint: Program, folder: Path
) -> None:
    before = versions(folder, "orders")
    slow = "insert into main.orders select count(*), 0 from range(10000000) a cross join range(1000) b"
    client.run("told = []")
    client.run(
        f"work = threading.Thread(target=lambda: told.append(failure(lambda: spark.sql('{slow}')))); work.start()"
    )
    _wait(endpoint, "len(running()) == 1")
    assert len(client.run("spark.interruptAll()")) >= 1
    client.run("work.join()")
    assert "SILT_STATEMENT_CANCELLED" in client.run("told[0][3]")
    assert versions(folder, "orders") == before


def test_a_client_is_told_the_progress_of_a_change_while_it_runs(client: Program) -> None:
    slow = "insert into main.orders select count(*), 0 from range(10000000) a cross join range(1000) b"
    client.run("apart, seen, told = connected(), threading.Event(), []")
    client.run(
        """
def note(stages, inflight_tasks, operation_id, done):
    told.extend(each.num_tasks for each in stages or ())
    if any(told):
        seen.set()
"""
    )
    client.run("apart.registerProgressHandler(note)")
    client.run(f"work = threading.Thread(target=lambda: failure(lambda: apart.sql('{slow}'))); work.start()")
    assert client.run("seen.wait(60)") is True
    client.run("apart.interruptAll(); work.join()")
    assert client.run("apart.table('main.orders').count()") == 2


_BEELINE = Path(pyspark.__file__).with_name("bin") / "beeline"


@pytest.mark.skipif("not _BEELINE.exists()", reason="this PySpark has no beeline")
def test_beeline_runs_statements_by_the_jdbc_driver_of_spark_connect(
    client: Program, endpoint: Program, folder: Path
) -> None:
    before = versions(folder, "orders")
    url = f"jdbc:sc://localhost:{endpoint.run('server.port')}/;token={programs.TOKEN}"
    text = (
        "insert into main.orders values (5, 1); select count(*) as found from main.orders; select * from main.nothing"
    )
    done = subprocess.run(
        [str(_BEELINE), "-u", url, "--outputformat=csv2", "--force=true", "-e", text],
        env={**os.environ, "SPARK_CONNECT_BEELINE": "1", "SPARK_HOME": str(_BEELINE.parents[1])},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ["found", "3"] == [line for line in done.stdout.splitlines() if line in ("found", "3")], done.stderr
    assert "TABLE_OR_VIEW_NOT_FOUND" in done.stderr
    assert versions(folder, "orders") == before + 1


def _wait(of: Program, condition: str) -> None:
    deadline = time.monotonic() + 60
    while not of.run(condition):
        assert time.monotonic() < deadline, condition


@pytest.fixture(scope="module")
def trusting(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Program]:
    """A client of an endpoint whose profile allows functions in Python and paths."""
    folder = tmp_path_factory.mktemp("trusting")
    with (
        programs.endpoint(folder, cache, python_functions=True, external_paths=True) as endpoint,
        programs.client(endpoint, cache) as client,  # type: ignore[arg-type]
    ):
        yield client  # type: ignore[misc]


def test_functions_in_python_run_if_the_profile_allows_them(trusting: Program) -> None:
    trusting.run("spark.sql('create table main.numbers as select 1 as id')")
    trusting.run("plus = F.udf(lambda number: number + 1, 'long')")
    assert trusting.run("rows(spark.table('main.numbers').select(plus('id')))") == [[2]]
    trusting.run("spark.udf.register('plus', lambda number: number + 1, 'long')")
    assert trusting.run("rows(spark.sql('select plus(id) from main.numbers'))") == [[2]]


def test_a_table_is_queried_by_its_path_if_the_profile_allows_it(trusting: Program, tmp_path: Path) -> None:
    place = f"delta.`{tmp_path}/else where`"
    trusting.run(f"spark.sql({f'create table {place} as select 1 as id'!r})")
    assert trusting.run(f"rows(spark.sql({f'select * from {place}'!r}))") == [[1]]


def test_what_a_session_writes_is_published_together_when_it_is_stopped(client: Program, folder: Path) -> None:
    before = versions(folder, "orders")
    client.run("apart = connected()")
    client.run("apart.conf.set('silt.publish', 'after_run')")
    client.run("apart.createDataFrame([(7, 1.5)], 'id long, amount double').write.insertInto('main.orders')")
    client.run("apart.table('main.orders').write.saveAsTable('main.copies')")
    assert client.run("[apart.table('main.copies').count(), spark.table('main.orders').count()]") == [3, 2]
    assert versions(folder, "orders") == before
    client.run("apart.stop()")
    assert client.run("[spark.table('main.copies').count(), spark.table('main.orders').count()]") == [3, 3]
    client.run("spark.sql('drop table main.copies')")

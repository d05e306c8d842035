"""dbt's suite for Python models, on an embedded Spark."""

from __future__ import annotations

from typing import Any, ClassVar

import pandas
import pyspark
import pytest
from dbt.tests.adapter.python_model import test_spark
from dbt.tests.adapter.python_model.test_python_model import (
    BasePythonEmptyTests,
    BasePythonIncrementalTests,
    BasePythonMetaGetTests,
    BasePythonModelTests,
    BasePythonSampleTests,
)
from dbt.tests.util import run_dbt, run_dbt_and_capture
from packaging.version import Version

from tests.functional.python_models.beside import meanwhile, ran


@pytest.mark.kept
class TestPythonModels(BasePythonModelTests):
    pass


@pytest.mark.kept
class TestPythonIncremental(BasePythonIncrementalTests):
    pass


class TestPythonMetaGet(BasePythonMetaGetTests):
    pass


class TestPythonEmpty(BasePythonEmptyTests):
    pass


class TestPythonSample(BasePythonSampleTests):
    pass


@pytest.mark.kept
class TestPySpark(test_spark.BasePySparkTests):
    """Koalas is discontinued, and runs on no current Spark: its successor pandas-on-Spark replaces it.

    It cannot be imported with pandas 3, and PySpark 4.0 refuses it in ANSI mode; there, pandas replaces both.
    """

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        runs = Version(pandas.__version__) < Version("3") and Version(pyspark.__version__) >= Version("4.1")
        module = "pyspark.pandas" if runs else "pandas"
        return {
            "pandas_df.py": test_spark.PANDAS_MODEL,
            "pyspark_df.py": test_spark.PYSPARK_MODEL,
            "pandas_on_spark_df.py": test_spark.PANDAS_ON_SPARK_MODEL.replace("pyspark.pandas", module),
            "koalas_df.py": test_spark.KOALAS_MODEL.replace("databricks.koalas", module),
        }


def rows(project: Any, query: str) -> list[tuple[Any, ...]]:
    return project.run_sql(query.replace("{schema}", f"{project.database}.{project.test_schema}"), fetch="all")


class TestReading:
    """The results that `dbt` and `session` return to a model."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "numbers.sql": "{{ config(materialized='table') }} select id, id % 3 as parent from range(6)",
            "seen.sql": "{{ config(materialized='view') }} select * from {{ ref('numbers') }} where id < 3",
            "passing.sql": "{{ config(materialized='ephemeral') }} select 1 as id",
            "joined.py": """
from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from pyspark.sql import functions as F


@dataclass
class Shift:
    by: int


def shifted(values: pd.Series) -> pd.Series:
    return values + Shift(100).by


def model(dbt, session):
    dbt.config(materialized="table", meta={"owner": "us"})
    dbt.config(packages=["pandas>=2", "pyarrow"], submission_method="job_cluster")
    assert isinstance(session, type(dbt.ref("seen").sparkSession)) and spark is session
    assert dbt.config.get("materialized") == "table" and dbt.config.get("nothing", 7) == 7
    assert dbt.config.meta_get("owner") == "us"
    assert not dbt.is_incremental
    assert f"{dbt.this}" == f"`{dbt.this.database}`.`{dbt.this.schema}`.`{dbt.this.identifier}`"
    children, parents = dbt.ref("numbers"), dbt.ref("numbers")
    seen = dbt.ref("seen").count()
    assert seen == session.table(str(dbt.this).replace("joined", "seen")).count()
    assert seen == session.sql(f"select * from {dbt.this.database}.{dbt.this.schema}.seen").count()
    few = session.sql(f"select * from {dbt.this.schema}.numbers where id < :most", args={"most": 2})
    assert few.count() == session.read.table(f"{dbt.this.schema}.numbers").where("id < 2").count() == 2
    assert session.catalog.tableExists(f"{dbt.this.schema}.numbers")
    assert not session.catalog.tableExists(f"{dbt.this}")
    print("rows seen:", seen)
    shift = F.pandas_udf(shifted, "bigint")
    found = children.join(parents, children.parent == parents.id)
    return found.select(children.id, shift(parents.id).alias("parent"))
""",
            "indexed.py": """
import pandas as pd

def model(dbt, session):
    return pd.DataFrame({"id": [1], "n": [2]}).set_index("id")
""",
            "nowhere.py": """
def model(dbt, session):
    return dbt.ref("passing")
""",
        }

    def test_refs_and_the_session_read_tables_and_views(self, project: Any) -> None:
        results, log = run_dbt_and_capture(["run", "--exclude", "nowhere"])
        assert len(results) == 4
        assert rows(project, "select * from {schema}.joined order by id") == [(n, 100 + n % 3) for n in range(6)]
        assert "joined: rows seen: 3" in log
        assert "index of the returned DataFrame (`id`) is not a column" in log
        assert rows(project, "select * from {schema}.indexed") == [(2,)]
        assert "`submission_method` has no effect" in log

    def test_an_ephemeral_model_cannot_be_read(self, project: Any) -> None:
        (result,) = run_dbt(["run", "--select", "nowhere"], expect_pass=False)
        assert "The model reads `passing`, which is ephemeral" in result.message


class TestErrors:
    """Each message names the line of the model, and nothing is written."""

    MODELS: ClassVar = {
        "divided": """

def ratio(total):
    return total / 0

def model(dbt, session):
    return session.range(ratio(3))
""",
        "left": "def model(dbt, session):\n    raise SystemExit(3)\n    return None",
        "nothing": "def model(dbt, session):\n    dbt.ref('given')\n    return None",
        "counted": "def model(dbt, session):\n    return dbt.ref('given').count()",
        "mixed": "import pandas as pd\ndef model(dbt, session):\n    return pd.DataFrame({'a': [1, 'x']})",
        "unknown": "def model(dbt, session):\n    read = dbt.ref\n    return read('given_not')",
        "absent": "def model(dbt, session):\n    rows = session.table('silt.no.such')\n    return rows",
        "analysed": "def model(dbt, session):\n    rows = dbt.ref('given').select('colour').schema\n    return rows",
        "late": """
from pyspark.sql import functions as F

def model(dbt, session):
    broken = F.udf(lambda n: 1 // n, "int")
    return session.range(1).select(broken("id").alias("x"))
""",
        "packed": "def model(dbt, session):\n    dbt.config(packages=['pandas', 'no-such-thing==2'])\n    return None",
        "stopped": "def model(dbt, session):\n    session.stop()\n    return session.range(1)",
    }

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "given.sql": "{{ config(materialized='table') }} select 1 as id",
            **{f"{name}.py": text for name, text in self.MODELS.items()},
        }

    def test_each_error_is_reported_with_its_line_and_nothing_is_written(self, project: Any) -> None:
        results = run_dbt(["run"], expect_pass=False)
        said = {result.node.name: result.message for result in results if result.status != "success"}
        assert set(said) == set(self.MODELS)
        for message in said.values():
            assert not any(word in message for word in ("JVM stacktrace", "at org.apache", "adapters/silt", "py4j"))
        assert said["divided"].endswith(
            "ZeroDivisionError: division by zero\n"
            '    File "models/divided.py", line 7, in model\n'
            "      return session.range(ratio(3))\n"
            '    File "models/divided.py", line 4, in ratio\n'
            "      return total / 0"
        )
        assert "SystemExit" in said["left"] and "line 2" in said["left"]
        assert "returned None" in said["nothing"]
        assert "returned int" in said["counted"]
        assert "column `a`" in said["mixed"]
        assert "dbt.ref does not know 'given_not'" in said["unknown"] and "line 3" in said["unknown"]
        assert "silt.no.such" in said["absent"] and "line 2" in said["absent"]
        assert "colour" in said["analysed"] and "line 2" in said["analysed"]
        assert "ZeroDivisionError" in said["late"] and "models/late.py" in said["late"]
        assert "pip install 'no-such-thing==2'" in said["packed"]
        assert "do not stop it" in said["stopped"]
        names = [
            relation.identifier for relation in project.adapter.list_relations(project.database, project.test_schema)
        ]
        assert names == ["given"]


class TestOthersMeanwhile:
    """Another writer commits to the target between the reads of the model's function and the model's commit."""

    NEWER = """
from tests.functional.python_models.beside import let_others_run

def model(dbt, session):
    dbt.config(materialized="incremental", incremental_strategy="append")
    rows = dbt.ref("source")
    if dbt.is_incremental:
        newest = session.sql(f"select max(id) from {dbt.this}").collect()[0][0]
        rows = rows.where(rows.id > newest)
    let_others_run("newer")
    return rows
"""
    MERGED = """
from pyspark.sql import functions as F
from tests.functional.python_models.beside import let_others_run

def model(dbt, session):
    dbt.config(materialized="incremental", unique_key="id", incremental_strategy="merge")
    let_others_run("merged")
    return dbt.ref("source").withColumn("chance", F.rand()).withColumn("same", F.col("chance"))
"""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        rebuilt = """
from tests.functional.python_models.beside import let_others_run, ran

def model(dbt, session):
    dbt.config(materialized="table")
    rows = dbt.ref("source")
    if "rebuilt" in ran:
        rows = session.table(dbt.this).select("id")
    let_others_run("rebuilt")
    return rows
"""
        return {
            "source.sql": "{{ config(materialized='table') }} select id from range({{ var('rows', 3) }})",
            "newer.py": self.NEWER,
            "merged.py": self.MERGED,
            "rebuilt.py": rebuilt,
        }

    @pytest.fixture(scope="class", autouse=True)
    def built(self, project: Any) -> None:
        run_dbt(["run"])

    def _meanwhile(self, project: Any, name: str, statement: str) -> None:
        text = statement.replace("{table}", f"{project.database}.{project.test_schema}.{name}")
        meanwhile(name, lambda: project.run_sql(text))

    def test_a_commit_is_refused_if_the_functions_reads_of_its_table_are_outdated(self, project: Any) -> None:
        run_dbt(["run", "--select", "source", "--vars", "rows: 5"])
        self._meanwhile(project, "newer", "insert into {table} values (3)")
        (result,) = run_dbt(["run", "--select", "newer"], expect_pass=False)
        assert "run it again" in result.message and "newer" in result.message
        assert rows(project, "select id from {schema}.newer order by id") == [(0,), (1,), (2,), (3,)]
        run_dbt(["run", "--select", "newer"])
        assert rows(project, "select id from {schema}.newer order by id") == [(0,), (1,), (2,), (3,), (4,)]

    def test_replacing_a_table_by_rows_computed_from_itself_loses_no_row_of_other_writers(self, project: Any) -> None:
        self._meanwhile(project, "rebuilt", "insert into {table} values (77)")
        (result,) = run_dbt(["run", "--select", "rebuilt"], expect_pass=False)
        assert "run it again" in result.message
        run_dbt(["run", "--select", "rebuilt"])
        assert (77,) in rows(project, "select id from {schema}.rebuilt")

    def test_a_merge_whose_function_did_not_read_the_table_keeps_rows_committed_meanwhile(self, project: Any) -> None:
        self._meanwhile(project, "merged", "insert into {table} values (99, 7, 7)")
        before = ran.count("merged")
        run_dbt(["run", "--select", "merged"])
        assert ran.count("merged") == before + 1
        found = rows(
            project, "select id, chance = same, chance < 1 from {schema}.merged where id in (1, 99) order by id"
        )
        assert found == [(1, True, True), (99, True, False)]

    def test_a_rerun_of_the_run_does_not_call_the_function(self, project: Any) -> None:
        again = ["run", "--select", "newer", "rebuilt", "--vars", "silt_run_id: R1"]
        run_dbt(list(again))
        before, found = list(ran), rows(project, "select count(*) from {schema}.rebuilt")
        results = run_dbt(list(again))
        assert [result.adapter_response.get("skipped") for result in results] == [True, True]
        assert ran == before and rows(project, "select count(*) from {schema}.rebuilt") == found


class TestIncremental:
    """The ways in which rows are added to an existing table."""

    EMPTY = """
import pandas as pd

def model(dbt, session):
    dbt.config(materialized="incremental", unique_key="id", on_schema_change="sync_all_columns")
    if dbt.is_incremental:
        return pd.DataFrame({"id": [], "day": [], "name": [None] * 0}, dtype=object)
    return session.sql("select 1L as id, date'2026-03-01' as day, 'a' as name")
"""
    STRATEGY = """
import polars as pl

def model(dbt, session):
    dbt.config(materialized="incremental", {config})
    if dbt.is_incremental:
        return pl.DataFrame({{"id": [2, 3], "part": ["b", "b"]}})
    return pl.DataFrame({{"id": [1, 2], "part": ["a", "b"]}})
"""
    BATCHED = """
def model(dbt, session):
    dbt.config(materialized="incremental", incremental_strategy="microbatch", event_time="at", batch_size="day",
               begin="2026-03-01")
    return dbt.ref("events")
"""
    WRITING = """
def model(dbt, session):
    dbt.config(materialized="table")
    session.sql(f"insert into {dbt.this.database}.{dbt.this.schema}.notes values (1)")
    return session.range(1)
"""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        strategy = self.STRATEGY.format
        return {
            "events.sql": "{{ config(materialized='table', event_time='at') }} select id, "
            "timestamp'2026-03-01 12:00:00' + make_dt_interval(cast(id as int)) as at from range(3)",
            "batched.py": self.BATCHED,
            "empty.py": self.EMPTY,
            "appended.py": strategy(config="incremental_strategy='append'"),
            "replaced.py": strategy(config="incremental_strategy='delete+insert', unique_key='id'"),
            "overwritten.py": strategy(config="incremental_strategy='insert_overwrite', partition_by='part'"),
            "writing.py": self.WRITING,
            "documented.py": "def model(dbt, session):\n    return session.sql('select 1 as id, 2L as n')",
            "schema.yml": """
models:
  - name: documented
    description: Made in python.
    config: {materialized: table, persist_docs: {relation: true, columns: true}}
    columns: [{name: n, description: How many.}]
  - name: writing
    config:
      pre_hook: "create table if not exists {{ target.schema }}.notes (id int)"
      post_hook: "insert into {{ target.schema }}.notes values (2)"
""",
        }

    @pytest.fixture(scope="class", autouse=True)
    def ran_twice(self, project: Any) -> None:
        for _ in range(2):
            results = run_dbt(["run", "--event-time-start", "2026-03-01", "--event-time-end", "2026-03-04"])
            assert len(results) == 8

    def test_an_empty_pandas_frame_changes_nothing(self, project: Any) -> None:
        found = rows(project, "select id, cast(day as string), name, typeof(day) from {schema}.empty")
        assert found == [(1, "2026-03-01", "a", "date")]

    def test_each_strategy_accepts_the_rows(self, project: Any) -> None:
        for name, found in {"appended": [1, 2, 2, 3], "replaced": [1, 2, 3], "overwritten": [1, 2, 3]}.items():
            assert rows(project, f"select id from {{schema}}.{name} order by id") == [(each,) for each in found]

    def test_a_microbatch_reads_its_own_window_of_its_inputs(self, project: Any) -> None:
        assert rows(project, "select id from {schema}.batched order by id") == [(0,), (1,), (2,)]

    def test_hooks_and_the_model_itself_write_other_tables(self, project: Any) -> None:
        assert rows(project, "select id from {schema}.notes order by id") == [(1,), (1,), (2,), (2,)]

    def test_descriptions_are_stored_for_python_models_too(self, project: Any) -> None:
        described = rows(project, "describe table {schema}.documented")
        assert [tuple(row[:3]) for row in described[:2]] == [("id", "int", None), ("n", "bigint", "How many.")]

"""The lanes: the environment of each, and its tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ENGINE = (
    "tests/unit/session",
    "tests/unit/engine/kernel/files",
    "tests/unit/engine/commands/merge/test_merge.py",
    "tests/unit/engine/commands/rows",
    "tests/unit/engine/commands/reading",
    "tests/unit/engine/commands/writing",
    "tests/unit/engine/commands/tables/test_create.py",
    "tests/unit/engine/test_sql.py",
    "tests/unit/engine/test_streams.py",
    "tests/unit/engine/datasource",
    "tests/unit/engine/changed_keys",
    "tests/unit/engine/test_spark_seams.py",
)
"""The tests of the engine that use Spark and pyarrow: writes, reads, merges, streams, and `format("silt")`."""

DBT = (
    "tests/functional/suite/materializations",
    "tests/functional/suite/relations/test_catalog.py",
    "tests/functional/incremental",
    "tests/functional/materializations/test_materializations.py",
    "tests/functional/materializations/test_seeds.py",
    "tests/functional/materializations/test_snapshots.py",
    "tests/functional/materializations/test_functions.py",
    "tests/functional/materializations/test_external_materialization.py",
    "tests/functional/projects/test_docs.py",
    "tests/functional/python_models",
    "tests/functional/runs/test_exactly_once.py",
    "tests/functional/exactly_once/test_run_ids.py",
    "tests/functional/command_server",
)
"""The tests of dbt's interfaces: each materialization and strategy, retry, microbatch, docs, Python models."""

SECURITY = (
    "tests/security/secrets/test_gateway_secret.py",
    "tests/security/secrets/test_ports_of_spark.py",
    "tests/security/secrets/test_what_others_can_read.py",
    "tests/security/texts",
)
"""The tests that depend on Spark's own code: names of files and settings, functions, and its SQL parser."""

ACCELERATED = (
    "tests/unit/engine/test_accelerated_answers.py",
    "tests/unit/engine/foreign",
    "tests/functional/runs/test_accelerator.py",
    "tests/functional/pairs/test_life.py",
    "tests/functional/pairs/test_clones.py",
    "tests/functional/pairs/test_collations.py",
)
"""The tests in which an accelerator could compute other values than Spark."""

READERS = ("tests/interop/test_other_readers.py",)

DBT_1_11 = ("--constraint", ".ci/constraints.txt")
WITHOUT_PARSER = ("--overrides", "tests/lanes/without-parser.txt")

DELTA_SPARK = {"SILT_DELTA_JARS": "io.delta:delta-spark_4.2_2.13:4.4.0"}
"""The newest delta-spark, whose jars fit PySpark 4.2."""

UNCLOSED_SOCKETS = ("-W", "ignore::ResourceWarning", "-W", "ignore::pytest.PytestUnraisableExceptionWarning")
"""PySpark 4.0 and 4.1 do not close the sockets of collected results; later versions do."""


@dataclass(frozen=True)
class Lane:
    """An environment and the tests to run in it.

    Attributes:
        name: of the folder below `.lanes`, and for `make test-long LANE=`.
        python: the version, as in `3.11`.
        java: the lowest sufficient feature release.
        installs: the arguments of each call of `uv pip install`, in order; later calls keep earlier packages.
        tests: paths for pytest.
        options: further arguments of pytest.
        environ: variables of the tests.
        may_fail: whether its versions are not supported yet: its failures are reported, and nothing else fails.
    """

    name: str
    python: str
    java: int
    installs: tuple[tuple[str, ...], ...]
    tests: tuple[str, ...] = ENGINE + DBT + SECURITY
    options: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)
    may_fail: bool = False


LANES = (
    Lane(
        name="lowest",
        python="3.11",
        java=17,
        installs=(("--resolution", "lowest-direct", "--editable", "."), ("--editable", ".[dev]", *DBT_1_11)),
        options=UNCLOSED_SOCKETS,
    ),
    Lane(
        name="spark-4.1",
        python="3.11",
        java=17,
        installs=(("--editable", ".[dev]", "pyspark==4.1.*", *DBT_1_11),),
        options=UNCLOSED_SOCKETS,
    ),
    Lane(
        name="accelerated",
        python="3.11",
        java=17,
        installs=(("--editable", ".[dev]", "pyspark==4.1.*", *DBT_1_11),),
        tests=ENGINE + ACCELERATED,
        options=("--accelerator", "comet", "-m", "not long", *UNCLOSED_SOCKETS),
    ),
    Lane(
        name="spark-4.2",
        python="3.12",
        java=17,
        installs=(("--editable", ".[dev]", "pyspark==4.2.*", *DBT_1_11),),
        tests=ENGINE + DBT + SECURITY + READERS,
        environ=DELTA_SPARK,
    ),
    Lane(
        name="newest",
        python="3.13",
        java=21,
        installs=(("--editable", ".[dev]", *DBT_1_11), ("pandas>=3",)),
    ),
    Lane(
        name="dbt-1.12",
        python="3.11",
        java=17,
        installs=(("--editable", ".[dev]", "dbt-core==1.12.*", *WITHOUT_PARSER),),
        tests=DBT,
    ),
    Lane(
        name="python-3.14",
        python="3.14",
        java=17,
        installs=(("--editable", ".[dev]", "dbt-core==1.12.*", *WITHOUT_PARSER),),
        tests=ENGINE + DBT,
    ),
    Lane(
        name="next-dbt",
        python="3.13",
        java=17,
        installs=(("--editable", ".[dev]", "--overrides", "tests/lanes/next-dbt.txt"),),
        tests=("tests/unit/dbt_seams", *DBT),
        may_fail=True,
    ),
    Lane(
        name="next-spark",
        python="3.13",
        java=21,
        installs=(("--editable", ".[dev]", *DBT_1_11, "--overrides", "tests/lanes/next-spark.txt"),),
        may_fail=True,
    ),
)

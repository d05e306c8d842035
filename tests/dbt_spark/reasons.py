"""The tests of dbt-spark that cannot pass at an endpoint, with the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

WORDS: Final = "it expects the words of Delta's error for a null, not its condition alone"
GRANTS: Final = "Spark has no grants without the access control of a metastore"
CLUSTER: Final = "dbt-spark submits models in Python to a cluster of Databricks"
NEWER: Final = "dbt-core 1.11 has no `dbt seed --empty`"
ODBC: Final = "it expects the names that ODBC gives to types"
NAMES: Final = "dbt-spark's method `session` names types as Spark does, and the test as Thrift does"
TIMEOUT: Final = "dbt-spark's method `session` has no `query_timeout`"
NONE: Final = "dbt-spark's method `session` writes an empty cell of a seed as the text None"

REASONS: Final[Mapping[str, str]] = {
    "TestSparkTableConstraintsRollback": WORDS,
    "TestSparkIncrementalConstraintsRollback": WORDS,
    **{
        f"TestSpark{kind}ConstraintsColumnsEqualPyodbc.test__constraints_{which}_column_data_types": ODBC
        for kind in ("Table", "View", "Incremental")
        for which in ("wrong", "correct")
    },
    "TestModelGrantsSpark": GRANTS,
    "TestIncrementalGrantsSpark": GRANTS,
    "TestSeedGrantsSpark": GRANTS,
    "TestSnapshotGrantsSpark": GRANTS,
    "TestInvalidGrantsSpark": GRANTS,
    "TestPythonModelSpark": CLUSTER,
    "TestPySpark": CLUSTER,
    "TestPythonIncrementalModelSpark": CLUSTER,
    "TestChangingSchemaSpark": CLUSTER,
    "TestSparkEmptySeedFlag.test_seed_empty_creates_table_with_zero_rows": NEWER,
    "TestSparkEmptySeedFlag.test_seed_empty_preserves_column_types": NEWER,
    "TestSparkEmptySeedFlag.test_build_empty_with_seed": NEWER,
}
"""Each class, or each test as `Class.test` -> the reason."""

ONLY: Final[Mapping[str, Mapping[str, str]]] = {
    "connect": {
        "TestSparkTableConstraintsColumnsEqualDatabricksHTTP.test__constraints_wrong_column_data_types": NAMES,
        "TestSparkTableConstraintsColumnsEqualDatabricksHTTP.test__constraints_correct_column_data_types": NAMES,
        "TestSparkViewConstraintsColumnsEqualDatabricksHTTP.test__constraints_wrong_column_data_types": NAMES,
        "TestSparkViewConstraintsColumnsEqualDatabricksHTTP.test__constraints_correct_column_data_types": NAMES,
        "TestSparkIncrementalConstraintsColumnsEqualDatabricksHTTP.test__constraints_wrong_column_data_types": NAMES,
        "TestSparkIncrementalConstraintsColumnsEqualDatabricksHTTP.test__constraints_correct_column_data_types": NAMES,
        "TestQueryTimeout": TIMEOUT,
        "TestStoreTestFailuresAsGeneric": NONE,
        "TestReplace": NONE,
        "TestRight": NONE,
        "TestUniqueKeySpark.test__one_unique_key": NONE,
        "TestUniqueKeySpark.test__unary_unique_key_list": NONE,
        "TestUniqueKeySpark.test__duplicated_unary_unique_key_list": NONE,
        "TestUniqueKeySpark.test__trinary_unique_key_list": NONE,
    },
    "thrift": {},
}
"""The same for the tests of a door alone."""

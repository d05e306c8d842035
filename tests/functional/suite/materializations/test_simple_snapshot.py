"""dbt-tests-adapter: simple_snapshot."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from dbt.tests.adapter.simple_snapshot import new_record_timestamp_mode, test_various_configs
from dbt.tests.adapter.simple_snapshot.new_record_check_mode import BaseSnapshotNewRecordCheckMode
from dbt.tests.adapter.simple_snapshot.new_record_dbt_valid_to_current import BaseSnapshotNewRecordDbtValidToCurrent
from dbt.tests.adapter.simple_snapshot.new_record_timestamp_mode import BaseSnapshotNewRecordTimestampMode
from dbt.tests.adapter.simple_snapshot.test_ephemeral_snapshot_hard_deletes import (
    BaseSnapshotEphemeralHardDeletes,
    BaseSnapshotNewColumnSpecificCheckCols,
    BaseSnapshotNewColumnTimestampStrategy,
    BaseSnapshotNewColumnWithDeletes,
)
from dbt.tests.adapter.simple_snapshot.test_snapshot import BaseSimpleSnapshot, BaseSnapshotCheck
from dbt.tests.adapter.simple_snapshot.test_various_configs import (
    BaseSnapshotColumnNames,
    BaseSnapshotColumnNamesFromDbtProject,
    BaseSnapshotDbtValidToCurrent,
    BaseSnapshotInvalidColumnNames,
    BaseSnapshotMultiUniqueKey,
)


def spark_types(sql: str) -> str:
    """Returns the same statement with Spark's names of Postgres' types."""
    for postgres, spark in (("::text", "::string"), (" TEXT", " STRING"), ("TIMESTAMP WITHOUT TIME ZONE", "TIMESTAMP")):
        sql = sql.replace(postgres, spark)
    return sql


class SparkTypes:
    """The tests name their statements as globals of their module: these are replaced by statements
    with Spark's types.
    """

    @pytest.fixture(scope="class", autouse=True)
    def statements(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in vars(test_various_configs).items():
                if name.endswith("_sql") and isinstance(value, str):
                    patch.setattr(test_various_configs, name, spark_types(value))
            yield


class SparkTypesOfNewRecord:
    """Postgres' `::text`, `TEXT` and `TIMESTAMP WITHOUT TIME ZONE` by Spark's names."""

    @pytest.fixture(scope="class")
    def seed_new_record_mode_statements(self) -> list[str]:
        return [spark_types(sql) for sql in new_record_timestamp_mode._seed_new_record_mode_statements]

    @pytest.fixture(scope="class")
    def update_sql(self) -> str:
        return spark_types(new_record_timestamp_mode._update_sql)


@pytest.mark.long
class TestSnapshotEphemeralHardDeletes(BaseSnapshotEphemeralHardDeletes):
    pass


@pytest.mark.long
class TestSnapshotNewColumnSpecificCheckCols(BaseSnapshotNewColumnSpecificCheckCols):
    pass


@pytest.mark.long
class TestSnapshotNewColumnTimestampStrategy(BaseSnapshotNewColumnTimestampStrategy):
    pass


@pytest.mark.long
class TestSnapshotNewColumnWithDeletes(BaseSnapshotNewColumnWithDeletes):
    pass


@pytest.mark.long
@pytest.mark.kept
class TestSimpleSnapshot(BaseSimpleSnapshot):
    pass


@pytest.mark.long
class TestSnapshotCheck(BaseSnapshotCheck):
    pass


@pytest.mark.long
class TestSnapshotNewRecordCheckMode(SparkTypesOfNewRecord, BaseSnapshotNewRecordCheckMode):
    pass


@pytest.mark.long
class TestSnapshotNewRecordDbtValidToCurrent(BaseSnapshotNewRecordDbtValidToCurrent):
    pass


@pytest.mark.long
class TestSnapshotNewRecordTimestampMode(SparkTypesOfNewRecord, BaseSnapshotNewRecordTimestampMode):
    pass


@pytest.mark.long
class TestSnapshotColumnNames(SparkTypes, BaseSnapshotColumnNames):
    pass


@pytest.mark.long
class TestSnapshotColumnNamesFromDbtProject(SparkTypes, BaseSnapshotColumnNamesFromDbtProject):
    pass


@pytest.mark.long
class TestSnapshotDbtValidToCurrent(SparkTypes, BaseSnapshotDbtValidToCurrent):
    pass


class TestSnapshotInvalidColumnNames(SparkTypes, BaseSnapshotInvalidColumnNames):
    pass


@pytest.mark.long
@pytest.mark.kept
class TestSnapshotMultiUniqueKey(SparkTypes, BaseSnapshotMultiUniqueKey):
    pass

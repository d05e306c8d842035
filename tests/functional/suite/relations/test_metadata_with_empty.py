"""dbt-tests-adapter: reads and changes of metadata under `--empty`."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.empty import _models
from dbt.tests.adapter.empty.test_empty import MetadataWithEmptyFlag


class TestMetadataWithEmptyFlag(MetadataWithEmptyFlag):
    """A text column is a `string` in Spark, because a `varchar` has a length."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "schema.yml": _models.SCHEMA,
            "control.sql": _models.CONTROL,
            "get_columns_in_relation.sql": _models.GET_COLUMNS_IN_RELATION,
            "alter_column_type.sql": _models.ALTER_COLUMN_TYPE.replace("varchar", "string"),
            "alter_relation_comment.sql": _models.ALTER_RELATION_COMMENT,
            "alter_column_comment.sql": _models.ALTER_COLUMN_COMMENT,
            "alter_relation_add_remove_columns.sql": _models.ALTER_RELATION_ADD_REMOVE_COLUMNS.replace(
                "varchar", "string"
            ),
            "truncate_relation.sql": _models.TRUNCATE_RELATION,
        }

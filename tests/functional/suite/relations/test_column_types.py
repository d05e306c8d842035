"""dbt-tests-adapter: column_types."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.column_types import fixtures
from dbt.tests.adapter.column_types.test_column_types import BasePostgresColumnTypes


class TestColumnTypes(BasePostgresColumnTypes):
    """Postgres' type names are replaced by Spark's if Spark does not know them."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        model = fixtures.model_sql.replace("::text", "::string").replace("::double precision", "::double")
        return {"model.sql": model.replace("::numeric", "::decimal(2, 1)"), "schema.yml": fixtures.schema_yml}

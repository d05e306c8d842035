"""dbt-tests-adapter: simple_copy."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.simple_copy.test_copy_uppercase import BaseSimpleCopyUppercase
from dbt.tests.adapter.simple_copy.test_simple_copy import EmptyModelsArentRunBase, SimpleCopyBase
from dbt_common.exceptions import DbtDatabaseError


class TestSimpleCopy(SimpleCopyBase):
    def test_simple_copy_with_materialized_views(self, project: Any) -> None:
        project.run_sql("create table {schema}.unrelated_table (id int)")
        with pytest.raises(DbtDatabaseError, match="materialized view"):
            project.run_sql("create materialized view {schema}.unrelated as (select * from {schema}.unrelated_table)")


class TestEmptyModelsArentRun(EmptyModelsArentRunBase):
    pass


@pytest.mark.long
class TestSimpleCopyUppercase(BaseSimpleCopyUppercase):
    """The suite's profile is one of Postgres."""

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, silt_target: dict[str, Any]) -> dict[str, Any]:
        return silt_target

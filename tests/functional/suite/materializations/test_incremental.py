"""dbt-tests-adapter: incremental."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.incremental.test_incremental_merge_exclude_columns import BaseMergeExcludeColumns
from dbt.tests.adapter.incremental.test_incremental_microbatch import BaseMicrobatch
from dbt.tests.adapter.incremental.test_incremental_on_schema_change import BaseIncrementalOnSchemaChange
from dbt.tests.adapter.incremental.test_incremental_predicates import BaseIncrementalPredicates
from dbt.tests.adapter.incremental.test_incremental_predicates import (
    TestIncrementalPredicatesDeleteInsert as BaseIncrementalPredicatesDeleteInsert,
)
from dbt.tests.adapter.incremental.test_incremental_predicates import (
    TestPredicatesDeleteInsert as BasePredicatesDeleteInsert,
)
from dbt.tests.adapter.incremental.test_incremental_unique_id import BaseIncrementalUniqueKey
from dbt.tests.util import run_dbt


@pytest.mark.kept
class TestMergeExcludeColumns(BaseMergeExcludeColumns):
    pass


@pytest.mark.long
@pytest.mark.kept
@pytest.mark.own_process("which batches there are by now is patched")
class TestMicrobatch(BaseMicrobatch):
    pass


@pytest.mark.kept
class TestIncrementalOnSchemaChange(BaseIncrementalOnSchemaChange):
    pass


class TestIncrementalPredicates(BaseIncrementalPredicates):
    pass


@pytest.mark.long
@pytest.mark.kept
class TestIncrementalPredicatesDeleteInsert(BaseIncrementalPredicatesDeleteInsert):
    pass


@pytest.mark.long
class TestPredicatesDeleteInsert(BasePredicatesDeleteInsert):
    pass


@pytest.mark.long
@pytest.mark.kept
class TestIncrementalUniqueKey(BaseIncrementalUniqueKey):
    """dbt's own tests, but for keys that name nothing: they are refused, because every run would append silently."""

    def test__empty_unique_key_list(self, project):  # type: ignore[no-untyped-def]
        self._is_refused("empty_unique_key_list")  # type: ignore[no-untyped-call]

    def test__empty_str_unique_key(self, project):  # type: ignore[no-untyped-def]
        self._is_refused("empty_str_unique_key")  # type: ignore[no-untyped-call]

    def _is_refused(self, model):  # type: ignore[no-untyped-def]
        run_dbt(["seed"])
        (result,) = run_dbt(["run", "--select", model], expect_pass=False)
        assert "`unique_key` must be" in result.message

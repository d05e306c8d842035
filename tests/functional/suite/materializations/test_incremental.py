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


@pytest.mark.stays
class TestMergeExcludeColumns(BaseMergeExcludeColumns):
    pass


@pytest.mark.stays
@pytest.mark.own_process("which batches there are by now is patched")
class TestMicrobatch(BaseMicrobatch):
    pass


@pytest.mark.stays
class TestIncrementalOnSchemaChange(BaseIncrementalOnSchemaChange):
    pass


class TestIncrementalPredicates(BaseIncrementalPredicates):
    pass


@pytest.mark.stays
class TestIncrementalPredicatesDeleteInsert(BaseIncrementalPredicatesDeleteInsert):
    pass


class TestPredicatesDeleteInsert(BasePredicatesDeleteInsert):
    pass


@pytest.mark.stays
class TestIncrementalUniqueKey(BaseIncrementalUniqueKey):
    pass

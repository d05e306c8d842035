"""dbt-tests-adapter: incremental."""

from __future__ import annotations

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


class TestMergeExcludeColumns(BaseMergeExcludeColumns):
    pass


class TestMicrobatch(BaseMicrobatch):
    pass


class TestIncrementalOnSchemaChange(BaseIncrementalOnSchemaChange):
    pass


class TestIncrementalPredicates(BaseIncrementalPredicates):
    pass


class TestIncrementalPredicatesDeleteInsert(BaseIncrementalPredicatesDeleteInsert):
    pass


class TestPredicatesDeleteInsert(BasePredicatesDeleteInsert):
    pass


class TestIncrementalUniqueKey(BaseIncrementalUniqueKey):
    pass

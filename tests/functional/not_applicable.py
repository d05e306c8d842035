"""The classes of dbt's adapter suite that are not simply inherited here, each by its name below `dbt.tests.adapter`.

`test_suite_is_whole.py` reads these tables, and fails if one of them names a class that the suite lacks.
"""

from __future__ import annotations

HELPERS = {
    "caching.test_caching.BaseCachingTest": "its subclasses bring the models",
    "constraints.test_constraints.BaseConstraintsColumnsEqual": "its subclasses bring the materialization",
    "constraints.test_constraints.BaseContractSqlHeader": "its subclasses bring the materialization",
    "functions.test_udafs.UDAFBase": "its subclasses bring the function",
    "utils.base_array_utils.BaseArrayUtils": "its subclasses bring the models",
    "utils.base_utils.BaseUtils": "its subclasses bring the models",
    "utils.data_types.base_data_type_macro.BaseDataTypeMacro": "its subclasses bring the type",
    "utils.test_current_timestamp.BaseCurrentTimestamp": "its subclasses bring the expected schema",
}
"""Base classes that other classes of the suite complete, and that cannot be run alone."""

_NO_AGGREGATES = "Spark has no statement that makes an aggregate function"

_NO_EMPTY_KEY = "an empty `unique_key` is refused here: dbt would append silently, so that a rerun doubles rows"

REFUSED = {
    "functions.test_udafs.BasicPythonUDAF": _NO_AGGREGATES,
    "functions.test_udafs.BasicSQLUDAF": _NO_AGGREGATES,
    "functions.test_udafs.PythonUDAFDefaultArgSupport": _NO_AGGREGATES,
    "incremental.test_incremental_unique_id.BaseIncrementalUniqueKey.test__empty_str_unique_key": _NO_EMPTY_KEY,
    "incremental.test_incremental_unique_id.BaseIncrementalUniqueKey.test__empty_unique_key_list": _NO_EMPTY_KEY,
    "catalog.relation_types.CatalogRelationTypes.test_relation_types_populate_correctly": (
        "the names of our relation types, as the base class asks for them; there are no materialized views"
    ),
    "functions.test_udfs.PythonUDFNotSupported": (
        "functions in Python are supported where the profile allows them, and refused by our own words where not"
    ),
    "simple_copy.test_simple_copy.SimpleCopyBase.test_simple_copy_with_materialized_views": (
        "a view that keeps its rows needs something that refreshes it, which an embedded Spark has not"
    ),
}
"""Inherited classes, or single tests of them (`module.Class.test`), whose test methods are replaced here: they assert
how the requested feature is refused.
"""

RESTATED = {
    "ephemeral.test_ephemeral.BaseEphemeralMulti": "the text that it compares a view's statement with is Postgres's",
    "ephemeral.test_ephemeral.BaseEphemeralNested": "the text that it compares a view's statement with is Postgres's",
}
"""Inherited classes whose test methods are rewritten here with the same assertions: the originals contain expected
values of Postgres that no fixture can change.
"""

_NO_JAVASCRIPT = "Spark runs no JavaScript, and dbt-core 1.11 reads no functions in it"
_NO_PRINCIPALS = "an embedded engine has nobody to grant anything to; TestGrants in test_refused.py shows the warning"
_NO_MATERIALIZED_VIEWS = "there are no materialized views; TestMaterializedViews in test_refused.py shows the refusal"

NOT_APPLICABLE = {
    "grants.test_incremental_grants.BaseIncrementalGrants": _NO_PRINCIPALS,
    "grants.test_invalid_grants.BaseInvalidGrants": _NO_PRINCIPALS,
    "grants.test_model_grants.BaseModelGrants": _NO_PRINCIPALS,
    "grants.test_seed_grants.BaseSeedGrants": _NO_PRINCIPALS,
    "grants.test_snapshot_grants.BaseSnapshotGrants": _NO_PRINCIPALS,
    "materialized_view.basic.MaterializedViewBasic": _NO_MATERIALIZED_VIEWS,
    "materialized_view.changes.MaterializedViewChanges": _NO_MATERIALIZED_VIEWS,
    "materialized_view.changes.MaterializedViewChangesApplyMixin": _NO_MATERIALIZED_VIEWS,
    "materialized_view.changes.MaterializedViewChangesContinueMixin": _NO_MATERIALIZED_VIEWS,
    "materialized_view.changes.MaterializedViewChangesFailMixin": _NO_MATERIALIZED_VIEWS,
    "dbt_clone.test_dbt_clone.TestPostgresCloneNotPossible": "BaseCloneNotPossible, cleaned up for Postgres",
    "empty.test_empty.BaseTestEmptySeedFlag": "`dbt seed --empty` is of dbt-core 1.12",
    "functions.test_js_udfs.BasicJSAggregateUDF": _NO_JAVASCRIPT,
    "functions.test_js_udfs.BasicJSUDF": _NO_JAVASCRIPT,
    "functions.test_js_udfs.JSAggregateUDFVolatilityIgnored": _NO_JAVASCRIPT,
    "functions.test_js_udfs.JSUDFDefaultArgSupport": _NO_JAVASCRIPT,
    "functions.test_js_udfs.JSUDFDeterministicVolatility": _NO_JAVASCRIPT,
    "functions.test_js_udfs.JSUDFMultiLineBody": _NO_JAVASCRIPT,
    "functions.test_js_udfs.JSUDFNonDeterministicVolatility": _NO_JAVASCRIPT,
    "functions.test_js_udfs.JSUDFStableVolatilityWarns": _NO_JAVASCRIPT,
    "utils.test_current_timestamp.BaseCurrentTimestampAware": "BaseCurrentTimestampNaive is its other half",
    "utils.test_escape_single_quotes.BaseEscapeSingleQuotesQuote": "BaseEscapeSingleQuotesBackslash is its other half",
}
"""Classes that are not inherited."""

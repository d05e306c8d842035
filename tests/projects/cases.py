"""The public projects that are built, with their expected results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Counts = Mapping[str, int]


@dataclass(frozen=True)
class Step:
    """A dbt command.

    Args:
        arguments: of dbt.
        counts: the number of nodes in each status; None if the command writes no results, or nothing is expected.
        reasons: each node that cannot pass -> the reason.
    """

    arguments: tuple[str, ...] = ("build",)
    counts: Mapping[str, int] | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A project, and how it is built.

    Args:
        name: for the report.
        folder: of the project, below the folder of all projects.
        steps: the dbt commands, in order.
        packages: names of further packages, which the project does not ask for.
        files: added to the project: path -> text.
        config: added to its `dbt_project.yml`.
        environment: variables of the commands.
        profile: added to the profile.
    """

    name: str
    folder: str
    steps: tuple[Step, ...] = (Step(),)
    packages: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    profile: Mapping[str, Any] = field(default_factory=dict)


FOUR_BYTES = "a `float` of Spark's has four bytes"
TYPE_NAMES = "the test knows the type names of four adapters, and not Spark's"
OTHER_ADAPTERS = "the package's tests create structs for three other adapters alone"
NO_RAW = "the package ignores `is_raw` and `flags` for Spark, with a warning"
RAW_EXPRESSIONS = (
    "dbt_expectations_expect_column_values_to_match_regex_data_text_postal_code_5_3__True___d_5_d_3_",
    "dbt_expectations_expect_column_values_to_match_regex_data_text_email_address__i___A_Z_",
    "dbt_expectations_expect_column_values_to_match_regex_data_text_postal_code_5__True___d_5_",
    "dbt_expectations_expect_column_values_to_match_regex_list_data_text_postal_code_5__True___d_5_",
    "dbt_expectations_expect_column_values_to_match_regex_list_data_text_email_address__i___A_G____H_Z_",
    "dbt_expectations_expect_column_values_to_match_regex_list_data_text_postal_code_5__True___d_5____",
    "dbt_expectations_expect_column_values_to_not_match_regex_data_text_postal_code_5__True___d_5_",
    "dbt_expectations_expect_column_values_to_not_match_regex_list_data_text_email_address__i__all___A_Z____0_9_",
    "dbt_expectations_expect_column_values_to_not_match_regex_list_data_text_postal_code_5__True__all___d_5____",
)
SAMPLES = """{% materialization test, default %}
  {{ return(elementary.materialization_test_default()) }}
{% endmaterialization %}
"""

WATCHED = "select *, cast(order_date as timestamp) as ordered_at from {{ ref('orders') }}\n"
WATCHING = """
models:
  - name: watched
    config: {elementary: {timestamp_column: ordered_at}}
    data_tests:
      - elementary.volume_anomalies
      - elementary.freshness_anomalies
      - elementary.event_freshness_anomalies: {arguments: {event_timestamp_column: ordered_at}}
      - elementary.dimension_anomalies: {arguments: {dimensions: [status]}}
      - elementary.all_columns_anomalies
      - elementary.schema_changes
    columns:
      - name: amount
        data_tests:
          - elementary.column_anomalies: {arguments: {column_anomalies: [min, max, null_count, average]}}
      - name: status
        data_tests:
          - accepted_values: {arguments: {values: [completed]}, config: {severity: warn}}
"""


JSON_OF_TEXT = """{% macro silt__json_parse(string, string_path) %}
  get_json_object({{ string }}, '$
    {%- for step in string_path %}{{ '[%s]' % step if step is number else '.' ~ step }}{% endfor -%} ')
{% endmacro %}
"""
"""Spark's `text : path`, which the package's macros use on Spark and Databricks, accepts variants only."""


def _of_fivetran(name: str, schema: str, seed: Counts, run: Counts, test: Counts) -> Case:
    """Returns the case of a Fivetran package with macros for Databricks; its sources are seeds in the schema."""
    return Case(
        f"fivetran {name}",
        f"dbt_{name}/integration_tests",
        (Step(("seed",), seed), Step(("run",), run), Step(("test",), test)),
        files={"macros/json_of_text.sql": JSON_OF_TEXT},
        profile={"target_type": "databricks", "schema": schema},
    )


NO_DOWNLOADS = """{% macro databricks__load_seed(uri, pattern, compression, headers, null_marker) %}
{% endmacro %}
"""

WITHOUT_VITALS: Final = {"snowplow__enable_cwv": False}
ALL_DAYS: Final = {"snowplow__allow_refresh": True, "snowplow__backfill_limit_days": 243}
VITALS: Final = (
    "snowplow_unified_web_vital_measurements",
    "snowplow_unified_web_vital_measurements_actual",
    "snowplow_unified_web_vital_events_this_run",
    "snowplow_unified_views_mobile_screen_engagement_actual",
    "test_name:not_null",
)

PACKAGES: Final = frozenset(("dbt-data-reliability", "dbt-date", "dbt-snowplow-utils", "fivetran_utils", "spark-utils"))
"""Folders of packages that the projects need, and that are not projects themselves."""

CASES = (
    Case("jaffle-shop-classic", "jaffle-shop-classic", (Step(counts={"success": 8, "pass": 20}),)),
    Case(
        "jaffle-shop",
        "jaffle-shop",
        (
            Step(("seed", "--vars", "load_source_data: true"), {"success": 6}),
            Step(counts={"success": 13, "pass": 30, "no-op": 3}),
        ),
    ),
    Case(
        "dbt-utils",
        "dbt-utils/integration_tests",
        (
            Step(
                counts={"success": 124, "pass": 111, "error": 1, "fail": 1},
                reasons={
                    "test_groupby": "Spark takes no `group by 1` next to `select *`",
                    "dbt_utils_equality_data_test_equality_floats_a_ref_data_test_equality_floats_b___8": FOUR_BYTES,
                },
            ),
        ),
    ),
    Case(
        "dbt-expectations",
        "dbt-expectations/integration_tests",
        (
            Step(
                counts={"success": 12, "pass": 147, "warn": 1, "fail": 9},
                reasons=dict.fromkeys(RAW_EXPRESSIONS, NO_RAW),
            ),
        ),
    ),
    Case(
        "dbt-project-evaluator",
        "dbt-project-evaluator/integration_tests",
        (Step(reasons={"equality_fct_test_coverage": FOUR_BYTES}),),
        profile={"target_type": "spark"},
    ),
    Case(
        "elementary, in jaffle-shop-classic",
        "jaffle-shop-classic",
        (Step(counts={"success": 41, "pass": 27, "warn": 1}),) * 2,
        packages=("elementary",),
        files={"macros/samples.sql": SAMPLES, "models/watched.sql": WATCHED, "models/watched.yml": WATCHING},
        config={"models": {"elementary": {"+schema": "elementary"}}},
    ),
    Case(
        "dbt_artifacts",
        "dbt_artifacts/integration_test_project",
        (
            Step(
                counts={"success": 45, "partial success": 1, "pass": 3, "no-op": 2},
                reasons={
                    "microbatch": "its inputs are filtered by one time, and its rows have another: they lie outside"
                },
            ),
        )
        * 2,
        environment={
            "TEST_ENV_VAR_1": "one",
            "TEST_ENV_VAR_NUMBER": "3",
            "TEST_ENV_VAR_EMPTY": "",
            "TEST_ENV_VAR_WITH_QUOTE": "Triple's",
        },
    ),
    Case(
        "dbt-audit-helper",
        "dbt-audit-helper/integration_tests",
        (
            Step(
                counts={"success": 50, "pass": 43, "error": 3, "skipped": 12},
                reasons={
                    "unit_test_struct_model_a": OTHER_ADAPTERS,
                    "unit_test_struct_model_b": OTHER_ADAPTERS,
                    "unit_quick_are_queries_identical": "the package has this macro for Snowflake and BigQuery alone",
                },
            ),
        ),
    ),
    Case(
        "dbt-codegen",
        "dbt-codegen/integration_tests",
        (
            Step(("run-operation", "create_source_table"), {"success": 1}),
            Step(("seed",), {"success": 3}),
            Step(("run",), {"success": 8}),
            Step(
                ("test",),
                counts={"pass": 25, "fail": 3},
                reasons=dict.fromkeys(
                    (
                        "test_generate_source_all_args",
                        "test_generate_model_repeated_yaml",
                        "test_generate_model_yaml",
                    ),
                    TYPE_NAMES,
                ),
            ),
        ),
    ),
    Case(
        "tuva",
        "tuva/integration_tests",
        (
            Step(
                counts={"success": 654, "pass": 986, "warn": 6, "fail": 1, "error": 1, "skipped": 231},
                reasons={
                    "test_terminology_icd_10_cm_billable_code_flag": "it looks for rows that the seed downloads",
                    "cms_hcc__int_members": "a fixture casts to `varchar`, and Spark wants its length",
                },
            ),
        ),
        files={"macros/load_seed.sql": NO_DOWNLOADS},
        profile={"target_type": "databricks"},
    ),
    Case(
        "snowplow unified",
        "dbt-snowplow-unified/integration_tests",
        (
            Step(("seed",), {"success": 31}),
            Step(("run", "--full-refresh", "--vars", json.dumps({**WITHOUT_VITALS, **ALL_DAYS})), {"success": 56}),
            *(Step(("run", "--vars", json.dumps(WITHOUT_VITALS)), {"success": 56}) for _ in range(3)),
            Step(
                ("test", "--exclude", *VITALS, "--vars", json.dumps({"store_failures": True})),
                {"pass": 51, "success": 5},
            ),
        ),
        profile={"target_type": "spark", "spark_conf": {"spark.sql.ansi.enabled": "false"}},
    ),
    _of_fivetran("github", "github_integration_tests_1", {"success": 14}, {"success": 34}, {"pass": 20}),
    _of_fivetran("stripe", "stripe_integrations_tests", {"success": 27}, {"success": 63}, {"pass": 15}),
    _of_fivetran("zendesk", "zendesk_integration_tests", {"success": 23}, {"success": 75}, {"pass": 13, "success": 1}),
    _of_fivetran("hubspot", "hubspot_integration_tests", {"success": 56}, {"success": 121}, {"pass": 65}),
)

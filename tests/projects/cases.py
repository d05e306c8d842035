"""The public projects that are built, with what must come of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Step:
    """A dbt command.

    Args:
        arguments: of dbt.
        counts: how many nodes end in each status; None where the command leaves no results, or nothing is expected.
        reasons: each node that does not pass -> why it cannot.
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
        packages: what is installed beyond what the project asks for: names of packages.
        files: what is written into the project: path -> text.
        config: what is added to its `dbt_project.yml`.
        environment: variables of the commands.
        profile: what is added to the profile.
    """

    name: str
    folder: str
    steps: tuple[Step, ...] = (Step(),)
    packages: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    profile: Mapping[str, Any] = field(default_factory=dict)


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

CASES = (
    Case("jaffle-shop-classic", "jaffle-shop-classic"),
    Case("jaffle-shop", "jaffle-shop", (Step(("seed", "--vars", "load_source_data: true")), Step())),
    Case("dbt-utils", "dbt-utils/integration_tests"),
    Case("dbt-expectations", "dbt-expectations/integration_tests"),
    Case("dbt-project-evaluator", "dbt-project-evaluator/integration_tests"),
    Case(
        "elementary, in jaffle-shop-classic",
        "jaffle-shop-classic",
        (Step(), Step()),
        packages=("elementary",),
        files={"macros/samples.sql": SAMPLES, "models/watched.sql": WATCHED, "models/watched.yml": WATCHING},
        config={"models": {"elementary": {"+schema": "elementary"}}},
    ),
    Case(
        "dbt_artifacts",
        "dbt_artifacts/integration_test_project",
        (Step(), Step()),
        environment={
            "TEST_ENV_VAR_1": "one",
            "TEST_ENV_VAR_NUMBER": "3",
            "TEST_ENV_VAR_EMPTY": "",
            "TEST_ENV_VAR_WITH_QUOTE": "Triple's",
        },
    ),
    Case("dbt-audit-helper", "dbt-audit-helper/integration_tests"),
    Case("dbt-codegen", "dbt-codegen/integration_tests", (Step(("run-operation", "create_source_table")), Step())),
)

"""The suite's checks of the rows that hooks wrote, for a warehouse other than Postgres."""

from __future__ import annotations

from typing import Any

FIELDS = (
    "test_state",
    "target_dbname",
    "target_host",
    "target_name",
    "target_schema",
    "target_threads",
    "target_type",
    "target_user",
    "target_pass",
    "run_started_at",
    "invocation_id",
    "thread_id",
)


def written_contexts(project: Any, table: str, state: str) -> list[dict[str, Any]]:
    """Returns the rows of a hook's table, as the suite's `get_ctx_vars` reads them; a double-quoted name is a string
    in Spark.
    """
    query = f"select {', '.join(FIELDS)} from {project.test_schema}.{table} where test_state = '{state}'"
    return [dict(zip(FIELDS, row, strict=True)) for row in project.run_sql(query, fetch="all")]


def check_context(context: dict[str, Any], project: Any, state: str) -> None:
    """The suite's assertions with this adapter's profile, which has no `dbname`, `host`, `user` and `pass`."""
    assert context["test_state"] == state
    assert context["target_dbname"] == ""
    assert context["target_host"] == ""
    assert context["target_name"] == "default"
    assert context["target_schema"] == project.test_schema
    assert context["target_threads"] == 4
    assert context["target_type"] == "silt"
    assert context["target_user"] == ""
    assert context["target_pass"] == ""
    assert context["run_started_at"]
    assert context["invocation_id"]

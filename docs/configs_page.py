"""Generates the page of configs: the adapter's own, from its config classes, and dbt's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from dbt.adapters.silt.impl import SiltConfig
from dbt.adapters.silt.materializations.incremental.changed_keys import CONFIGS as CHANGED_KEYS
from dbt.adapters.silt.materializations.incremental.config import DATABRICKS, DUCKDB, IncrementalConfig
from dbt.adapters.silt.materializations.unused_configs import UNUSED
from docs.markdown import GENERATED, described_attributes, kind_of, sentence, table

DBT_CONFIGS: Mapping[str, Mapping[str, str]] = {
    "All nodes": {
        "contract": "With `enforced: true`, columns and types must match the declaration, and rows that break NOT NULL "
        "or CHECK are rejected.",
        "full_refresh": "Whether the table is created again; overrides the flag.",
        "grants": "Accepted with one warning, without effect: the permissions of the folder apply.",
        "materialized": "`table`, `view`, `incremental`, `external`, `ephemeral`, or a materialization of the project.",
        "persist_docs": "Stores descriptions of the model (`relation`) and its columns (`columns`) as comments.",
        "post_hook": "Statements after the write. A statement that changes a table runs once in a logical run.",
        "pre_hook": "Statements before the write. A statement that changes a table runs once in a logical run.",
        "sql_header": "Statements that run before the model's own, in the same session, such as `set ...`.",
    },
    "Incremental models": {
        "batch_size": "The batch size of `microbatch`: `hour`, `day`, `month` or `year`.",
        "begin": "The start of the first batch of `microbatch`.",
        "concurrent_batches": "Whether batches of `microbatch` run in parallel.",
        "event_time": "The column that assigns a row to a batch of `microbatch`.",
        "incremental_strategy": "`changed_keys`, `append`, `merge`, `delete+insert`, `insert_overwrite`, "
        "`replace_where`, `microbatch`, or a strategy of the project; by default `merge` with a "
        "`unique_key` and `append` without.",
        "lookback": "The number of batches before the newest that `microbatch` processes again.",
        "on_missing_changes": "`fail` (the default) or `full_refresh`, if changes for `silt_changes` are missing.",
        "on_schema_change": "`ignore` (the default), `fail`, `append_new_columns` or `sync_all_columns`.",
        "unique_key": "The column, or the list of columns, on which rows match.",
    },
    "Snapshots": {
        "check_cols": "The columns that the strategy `check` compares, or `all`.",
        "dbt_valid_to_current": "The value of `dbt_valid_to` in current rows; null by default.",
        "hard_deletes": "What happens to rows deleted from the source: `ignore`, `invalidate` or `new_record`.",
        "snapshot_meta_column_names": "New names for the columns that dbt adds: dbt's name -> new name.",
        "strategy": "`timestamp` or `check`.",
        "updated_at": "The column with the time at which a row changed, for the strategy `timestamp`.",
    },
    "Seeds": {
        "column_types": "The types of columns, instead of the inferred types.",
        "quote_columns": "Whether the column names in the header are quoted.",
    },
    "Tests": {
        "error_if": "The condition on the number of failures for an error.",
        "fail_calc": "The expression that counts failures.",
        "limit": "The maximum number of failures that are fetched.",
        "store_failures_as": "How failures are stored: `table` or `view`.",
        "warn_if": "The condition on the number of failures for a warning.",
    },
    "Functions and python models": {
        "packages": "The packages that a python model requires, in pip's syntax.",
        "volatility": "The volatility of a function: `deterministic` or `non-deterministic`.",
    },
}
"""The configs of dbt that this adapter reads."""

_EXTERNAL = ("location", "format", "options", "delimiter")


def configs_page() -> str:
    described = {**described_attributes(IncrementalConfig), **described_attributes(SiltConfig)}
    own = {each.name: each for each in fields(SiltConfig) if each.name != "_extra"}
    incremental = {each.name for each in fields(IncrementalConfig)} - {"_extra"}
    groups = {
        "Every model": [name for name in own if name not in incremental and name not in _EXTERNAL],
        "The materialization `external`": _EXTERNAL,
        "The strategy `changed_keys`": CHANGED_KEYS,
        "The strategy `merge`": [name for name in incremental if name not in (*CHANGED_KEYS, *DATABRICKS, *DUCKDB)],
        "`merge` with the configs of dbt-databricks": DATABRICKS,
        "`merge` with the configs of dbt-duckdb": DUCKDB,
    }
    parts = [
        GENERATED,
        "# Configs\n",
        "The configs that a model, seed or snapshot may set in `config(...)`, in a properties file or in "
        "`dbt_project.yml`. A misspelt name is an error before anything is written; in a package, whose "
        "user cannot correct it, it is a warning. Put your own configs into `meta`. "
        "[configs.schema.json](configs.schema.json) describes them for editors.\n",
        "## The adapter's own\n",
    ]
    for title, names in groups.items():
        rows = [(f"`{name}`", kind_of(own[name]), sentence(described[name])) for name in own if name in names]
        parts += [f"### {title}\n", table(("config", "type", "description"), rows)]
    parts.append("## dbt's configs\n")
    for title, configs in DBT_CONFIGS.items():
        parts.append(f"### {title}\n")
        parts.append(table(("config", "description"), [(f"`{name}`", text) for name, text in configs.items()]))
    parts += [
        "## Accepted, without effect\n",
        "Configs of other adapters. Each causes one warning in a run, which names the alternative.\n",
        table(("config", "reason"), [(f"`{name}`", sentence(reason)) for name, reason in sorted(UNUSED.items())]),
    ]
    return "\n".join(parts)

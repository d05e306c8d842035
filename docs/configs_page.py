"""The page of configs: the adapter's own, from the classes of its configs, and dbt's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from dbt.adapters.silt.impl import SiltConfig
from dbt.adapters.silt.materializations.incremental.config import DATABRICKS, DUCKDB, IncrementalConfig
from dbt.adapters.silt.materializations.unused_configs import UNUSED
from docs.markdown import GENERATED, described_attributes, kind_of, sentence, table

DBT_CONFIGS: Mapping[str, Mapping[str, str]] = {
    "All nodes": {
        "contract": "With `enforced: true` columns and types must be those declared, and rows that break NOT NULL "
        "or CHECK are refused.",
        "full_refresh": "Whether the table is made again; in place of the flag.",
        "grants": "Accepted, with one warning: the rights on the folder decide.",
        "materialized": "`table`, `view`, `incremental`, `external`, `ephemeral`, or one of the project's own.",
        "persist_docs": "Keeps descriptions of the model (`relation`) and its columns (`columns`) as comments.",
        "post_hook": "Statements after the write. One that changes a table runs once in a logical run.",
        "pre_hook": "Statements before the write. One that changes a table runs once in a logical run.",
        "sql_header": "Statements that run before the model's own, in the same session, such as `set ...`.",
    },
    "Incremental models": {
        "batch_size": "Of `microbatch`: `hour`, `day`, `month` or `year`.",
        "begin": "Of `microbatch`: the first moment.",
        "concurrent_batches": "Of `microbatch`: whether batches run side by side.",
        "event_time": "Of `microbatch`: the column that puts a row into a batch.",
        "incremental_strategy": "`append`, `merge`, `delete+insert`, `insert_overwrite`, "
        "`replace_where`, `microbatch`, or one of the project's own; by default `merge` where there is a "
        "`unique_key`, else `append`.",
        "lookback": "Of `microbatch`: how many batches before the newest are done again.",
        "on_schema_change": "`ignore` (the default), `fail`, `append_new_columns` or `sync_all_columns`.",
        "unique_key": "The column, or the list of columns, by which rows match.",
    },
    "Snapshots": {
        "check_cols": "Of the strategy `check`: the columns that are compared, or `all`.",
        "dbt_valid_to_current": "What `dbt_valid_to` is in current rows; null by default.",
        "hard_deletes": "What happens to rows that left the source: `ignore`, `invalidate` or `new_record`.",
        "snapshot_meta_column_names": "Other names for the columns that dbt adds: dbt's name -> the name.",
        "strategy": "`timestamp` or `check`.",
        "updated_at": "Of the strategy `timestamp`: the column that says when a row changed.",
    },
    "Seeds": {
        "column_types": "The types of columns, in place of those that are found.",
        "quote_columns": "Whether the names in the header are quoted.",
    },
    "Tests": {
        "error_if": "When the test fails.",
        "fail_calc": "How failures are counted.",
        "limit": "How many failures are fetched.",
        "store_failures_as": "`table` or `view`: how failures are kept.",
        "warn_if": "When the test warns.",
    },
    "Functions and python models": {
        "packages": "Of python models: packages that must be installed, as pip writes them.",
        "volatility": "Of functions: `deterministic` or `non-deterministic`.",
    },
}
"""dbt's own configs, as far as this adapter reads them."""

_EXTERNAL = ("location", "format", "options", "delimiter")


def configs_page() -> str:
    described = {**described_attributes(IncrementalConfig), **described_attributes(SiltConfig)}
    own = {each.name: each for each in fields(SiltConfig) if each.name != "_extra"}
    incremental = {each.name for each in fields(IncrementalConfig)} - {"_extra"}
    groups = {
        "Every model": [name for name in own if name not in incremental and name not in _EXTERNAL],
        "The materialization `external`": _EXTERNAL,
        "The strategy `merge`": [name for name in incremental if name not in (*DATABRICKS, *DUCKDB)],
        "`merge`, as dbt-databricks has it": DATABRICKS,
        "`merge`, as dbt-duckdb has it": DUCKDB,
    }
    parts = [
        GENERATED,
        "# Configs\n",
        "What a model, seed or snapshot may set in `config(...)`, in a properties file or in `dbt_project.yml`. A "
        "name that is close to one of these is refused as misspelt, before anything is written; in a package, whose "
        "user cannot change it, it is a warning. Configs of your own belong into `meta`. "
        "[configs.schema.json](configs.schema.json) describes them for editors.\n",
        "## The adapter's own\n",
    ]
    for title, names in groups.items():
        rows = [(f"`{name}`", kind_of(own[name]), sentence(described[name])) for name in own if name in names]
        parts += [f"### {title}\n", table(("config", "type", "what it does"), rows)]
    parts.append("## dbt's, and what they do here\n")
    for title, configs in DBT_CONFIGS.items():
        parts.append(f"### {title}\n")
        parts.append(table(("config", "what it does"), [(f"`{name}`", text) for name, text in configs.items()]))
    parts += [
        "## Accepted, without effect\n",
        "Configs of other adapters. Each gives one warning in a run, which says what to use instead.\n",
        table(("config", "why"), [(f"`{name}`", sentence(reason)) for name, reason in sorted(UNUSED.items())]),
    ]
    return "\n".join(parts)

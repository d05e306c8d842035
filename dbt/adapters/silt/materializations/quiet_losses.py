"""Writes warnings about rows, versions and values that a table loses in a write that succeeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dbt.adapters.silt.engine.catalog.names.log_end import readable
from dbt.adapters.silt.engine.kernel.files.stats_json import row_count
from dbt.adapters.silt.engine.kernel.identifiers import quote, quote_if_needed
from dbt.adapters.silt.engine.kernel.printable import number_of, short_id
from dbt.adapters.silt.engine.sql import mistakes
from dbt.adapters.silt.runs.once import first_time

if TYPE_CHECKING:
    from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
    from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
    from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
    from dbt.adapters.silt.records.units import RunContext

_REPLACE_ROWS = frozenset(("insert_overwrite", "replace_where", "microbatch"))
"""The strategies that delete rows of the table which the query does not name."""


def replaced_by_view(name: RelationName, log: DeltaLog) -> str:
    """Returns the warning that a view replaces a table, and the table's versions are lost."""
    snapshot = readable(log)
    until = "until the view is created again" if log.store.has_folders else "for a day"
    kept = ""
    if snapshot is not None:
        source = f"delta.{quote(log.store.root)} version as of {snapshot.version}"
        kept = f" Its rows can be copied {until}: `create table {_copy_of(name)} deep clone {source}`"
    return (
        f"{name} is {_described(snapshot)}: this run replaces it with a view, and its versions are lost. "
        f"To keep a table, configure `materialized`; with `--warn-error`, no view replaces a table.{kept}"
    )


def emptied(name: RelationName, snapshot: Snapshot, context: RunContext) -> str | None:
    """Returns the warning that a command with `--empty` or `--sample` removes rows from tables; once in a command.

    Args:
        name: the table that the command is about to write.
        snapshot: the table's current version.
    """
    if not snapshot.num_files or not first_time("tables lose rows by --empty or --sample"):
        return None
    flag, gives = ("--empty", "tables without rows") if context.empty else ("--sample", "tables from part of the rows")
    rows = row_count(snapshot.files)
    return (
        f"`{flag}` builds {gives}, but {name} has {'rows' if rows is None else number_of(rows, 'row')}: this command "
        "replaces the rows of existing tables. "
        f"Use `{flag}` with a `--target` that has its own schema. "
        f"To undo it: `silt rollback {short_id(context.run_id)}`"
    )


def misread_texts(node: Mapping[str, Any], quotes_names: bool) -> Iterator[str]:
    """Yields warnings of texts in a query that Spark probably reads otherwise than meant; once in a command.

    They are names in double quotes, which are strings, and units of `date_trunc` that Spark does not know.

    Args:
        node: the node, as dbt passes it to macros.
        quotes_names: whether the profile lets double quotes enclose names.
    """
    if node.get("language", "sql") != "sql" or not first_time(f"the texts of {node.get('unique_id')}"):
        return
    query = node.get("compiled_code") or ""
    if not quotes_names and (names := mistakes.selected_strings(query)):
        texts = ", ".join(f'"{name}"' for name in names)
        yield (
            f"{node['name']} selects {texts}: in Spark, double quotes enclose a string, and every row gets this text. "
            f"For a column, write {', '.join(map(quote, names))}; for a text, add an alias"
        )
    if units := mistakes.unknown_units(query):
        yield (
            f"{node['name']} calls date_trunc('{units[0]}', ...): Spark has no such unit, and returns null for every "
            "row. Its units are year, quarter, month, week, day, hour, minute and second"
        )


def loses_rows(config: Mapping[str, Any], full_refresh: bool) -> bool:
    """Returns whether a node's write removes rows from its table if its query returns no rows.

    Args:
        config: the node's config.
        full_refresh: whether the command has the flag `--full-refresh`.
    """
    kind = config.get("materialized")
    if kind == "incremental":
        return full_refresh or config.get("incremental_strategy") in _REPLACE_ROWS
    return kind == "table"


def _described(snapshot: Snapshot | None) -> str:
    if snapshot is None:
        return "a table whose log cannot be read"
    rows = row_count(snapshot.files)
    versions = f"a table of {number_of(snapshot.version + 1, 'version')}"
    return versions if rows is None else f"{versions} with {number_of(rows, 'row')}"


def _copy_of(name: RelationName) -> str:
    return f"{quote_if_needed(name.schema)}.{quote_if_needed(f'{name.identifier}_kept')}"

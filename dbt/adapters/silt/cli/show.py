"""`silt show TABLE[@v]`: shows a table at a version, or its rows."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from typing import TYPE_CHECKING, Any

from dbt.adapters.silt.cli.output.answers import UNKNOWN, UTC, Answer, Block, Facts, Rows, count, iso, size, utc
from dbt.adapters.silt.cli.output.rendering import show
from dbt.adapters.silt.cli.tables.column_statistics import ColumnStatistics, column_statistics
from dbt.adapters.silt.cli.warehouses import Subparsers, snapshot_of, subcommand, view_of
from dbt.adapters.silt.engine.catalog.names.documents import View
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError
from dbt.adapters.silt.engine.kernel.files.stats_json import deleted_rows, row_count
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.publication_marks import OF_TABLES
from dbt.adapters.silt.engine.kernel.table.clustering import clustered_by
from dbt.adapters.silt.engine.kernel.table.features import features_of
from dbt.adapters.silt.engine.kernel.table.keys import enforcement, table_keys
from dbt.adapters.silt.engine.kernel.table.schema import CURRENT_DEFAULT
from dbt.adapters.silt.lazy import lazy_module

if TYPE_CHECKING:
    from dbt.adapters.silt.cli.tables import rows
else:
    rows = lazy_module("dbt.adapters.silt.cli.tables.rows")

_COLUMNS = ("column", "type", "null", "min", "max", "#nulls", "comment")
_FEW_ROWS = 20
_TRANSACTIONS = ("transaction id", "#version", f"last updated {UTC}")
_DESCRIPTION = """\
Shows a table at its newest version, or at an earlier one: TABLE@v12, or TABLE@2026-01-31T12:00 (UTC unless a zone is
given); for a view, its query. Minimum and maximum come from the statistics in the log, and may be wider than the
values. With --rows it shows rows instead, in no particular order; a condition compares columns with literals, and a
condition that needs Spark is refused. Transaction ids are the units of work that the table has recorded, of dbt runs,
streams and other programs."""


def add(subparsers: Subparsers) -> None:
    """Declares the subcommand."""
    parser = subcommand(
        subparsers,
        "show",
        "show schema, files, statistics and transaction ids of a table; the query of a view",
        _DESCRIPTION,
    )
    parser.add_argument(
        "table", metavar="TABLE[@VERSION]", help="a name, such as main.orders, or the path of a table's folder"
    )
    parser.add_argument(
        *("-r", "--rows"),
        metavar="N",
        nargs="?",
        type=_count,
        const=_FEW_ROWS,
        help=f"show N rows, {_FEW_ROWS} by default",
    )
    parser.add_argument("--columns", metavar="NAMES", help="only these columns of the rows, as in id,amount")
    parser.add_argument("--where", metavar="CONDITION", help='only rows for which it is true, as in "id > 3"')


def run(arguments: Namespace) -> int:
    """Prints the table, its rows, or the view."""
    if arguments.rows is None and (arguments.columns or arguments.where) is not None:
        arguments.rows = _FEW_ROWS
    view = view_of(arguments.table, arguments)
    if view is not None and arguments.rows is not None:
        raise InvalidStatementError(
            "it is a view, whose rows only Spark computes",
            remedy="Show the rows of a table that it reads, or query it with `dbt show`",
            table=str(view.name),
        )
    if view is not None:
        return show(view_answer(view), arguments.json)
    if arguments.rows is not None:
        return show(rows_answer(*snapshot_of(arguments.table, arguments), arguments), arguments.json)
    return show(answer(*snapshot_of(arguments.table, arguments)), arguments.json)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise ArgumentTypeError(f"{text} is not a number of rows")
    return int(text)


def answer(log: DeltaLog, snapshot: Snapshot) -> Answer:
    """Renders the table at the snapshot's version."""
    columns = column_statistics(snapshot)
    transactions = sorted(snapshot.transactions.values(), key=lambda each: each.app_id)
    document = {
        **_document(log, snapshot),
        "columns": [_column_json(each) for each in columns],
        "transactions": [
            {"app_id": each.app_id, "version": each.version, "last_updated": iso(each.last_updated)}
            for each in transactions
        ],
    }
    blocks: list[Block] = [_facts(log, snapshot), Rows(_COLUMNS, [_column_row(each) for each in columns])]
    if snapshot.metadata.configuration:
        blocks.append(Facts(dict(sorted(snapshot.metadata.configuration.items())), "properties"))
    of_writers = [each for each in transactions if each.app_id not in OF_TABLES]
    if of_writers:
        rows = [[each.app_id, str(each.version), utc(each.last_updated)] for each in of_writers]
        blocks.append(Rows(_TRANSACTIONS, rows))
    return Answer(document, blocks)


def rows_answer(log: DeltaLog, snapshot: Snapshot, arguments: Namespace) -> Answer:
    """Renders the first rows of the table."""
    found = rows.first_rows(log, snapshot, arguments.rows, arguments.columns, arguments.where)
    headings = [f"#{name}" if number else name for name, number in zip(found.names, found.numbers, strict=True)]
    return Answer(found.documents(), [Rows(headings, found.cells(), empty="no rows")])


def view_answer(view: View) -> Answer:
    """Renders a view: its query, and the database and schema of unqualified names in it."""
    columns = [
        {"name": ".".join((column.name, *path)), "comment": comment}
        for column in view.columns
        for path, comment in (((), column.comment), *column.fields)
    ]
    document = {
        "view": str(view.name),
        "created_at": iso(view.created_at),
        "comment": view.comment,
        "current_database": view.current_database,
        "current_schema": view.current_schema,
        "properties": dict(sorted(view.properties.items())),
        "columns": columns,
        "text": view.text,
    }
    facts = {
        "view": str(view.name),
        "created": "" if view.created_at is None else f"{utc(view.created_at)} UTC",
        "comment": view.comment or "",
        "names are of": ".".join(part for part in (view.current_database, view.current_schema) if part),
    }
    blocks: list[Block] = [Facts({name: value for name, value in facts.items() if value})]
    if columns:
        blocks.append(
            Rows(("column", "comment"), [[each["name"] or "", each["comment"] or UNKNOWN] for each in columns])
        )
    if view.properties:
        blocks.append(Facts(dict(sorted(view.properties.items())), "properties"))
    return Answer(document, [*blocks, view.text])


def _document(log: DeltaLog, snapshot: Snapshot) -> dict[str, Any]:
    metadata, protocol = snapshot.metadata, snapshot.protocol
    return {
        "table": log.name,
        "location": log.store.root,
        "version": snapshot.version,
        "committed_at": iso(log.committed_at(snapshot)),
        "id": metadata.id,
        "created_at": iso(metadata.created_time),
        "comment": metadata.description,
        "partition_columns": list(snapshot.partition_columns),
        "clustering_columns": clustered_by(snapshot.schema, snapshot.domains),
        "files": snapshot.num_files,
        "size_in_bytes": snapshot.size_in_bytes,
        "rows": row_count(snapshot.files),
        "rows_marked_deleted": deleted_rows(snapshot.files) if snapshot.num_files else 0,
        "min_reader_version": protocol.min_reader_version,
        "min_writer_version": protocol.min_writer_version,
        "features": features_of(protocol),
        "properties": dict(sorted(metadata.configuration.items())),
        "constraints": _constraints(snapshot),
    }


def _facts(log: DeltaLog, snapshot: Snapshot) -> Facts:
    known = _document(log, snapshot)
    marked = known["rows_marked_deleted"]
    facts = {
        "table": log.name,
        "location": log.store.root,
        "version": f"{snapshot.version}, committed {utc(log.committed_at(snapshot))} UTC",
        "comment": known["comment"] or "",
        "rows": count(known["rows"]) + (f", {count(marked)} more deleted by deletion vectors" if marked else ""),
        "files": f"{count(snapshot.num_files)}, {size(snapshot.size_in_bytes)}",
        "partitioned by": ", ".join(known["partition_columns"]),
        "clustered by": ", ".join(known["clustering_columns"]),
        "protocol": f"reader {known['min_reader_version']}, writer {known['min_writer_version']}",
        "features": ", ".join(known["features"]),
        "id": snapshot.metadata.id,
    }
    facts.update({f"constraint {name}": text for name, text in known["constraints"].items()})
    return Facts({name: value for name, value in facts.items() if value})


def _constraints(snapshot: Snapshot) -> dict[str, str]:
    checks = {name: f"check ({condition})" for name, condition in snapshot.properties.constraints.items()}
    keys = table_keys(snapshot.metadata.configuration).items()
    notes = {name: enforcement(key, snapshot.transactions, snapshot.version) for name, key in keys}
    return {**checks, **{name: f"{key.sql} ({notes[name]})" for name, key in keys}}


def _column_row(column: ColumnStatistics) -> list[str]:
    return [
        column.name,
        column.field.sql_type,
        "yes" if column.field.nullable else "no",
        _text(column.minimum),
        _text(column.maximum),
        count(column.nulls),
        column.field.comment or UNKNOWN,
    ]


def _column_json(column: ColumnStatistics) -> dict[str, Any]:
    has_default = CURRENT_DEFAULT in column.field.metadata
    return {
        "name": column.name,
        "type": column.field.sql_type,
        "nullable": column.field.nullable,
        "comment": column.field.comment,
        "default": column.field.default if has_default else None,
        "generated_as": column.field.generation_expression,
        "min": column.minimum,
        "max": column.maximum,
        "nulls": column.nulls,
    }


def _text(value: Any) -> str:
    if value is None:
        return UNKNOWN
    return str(value).lower() if isinstance(value, bool) else str(value)

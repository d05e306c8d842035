"""Describes how a query is answered: the files of each table that are read, and why the other files are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from dbt.adapters.silt.cli.shell.output import Explanation
from dbt.adapters.silt.cli.tables.column_statistics import ends
from dbt.adapters.silt.engine.answers.explained import Explained, TableRead
from dbt.adapters.silt.engine.kernel.files.bounds import column_bounds
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.kernel.printable import line, number_of
from dbt.adapters.silt.engine.kernel.scan.skipping import SkippedBy, SkipReason
from dbt.adapters.silt.engine.kernel.table import expressions
from dbt.adapters.silt.engine.sql.conditions.predicates import field_at

_FEW = 5


def explanation(found: Explained) -> Explanation:
    """Returns the explanation as lines and as JSON."""
    document = {
        "answered_by": found.source.name.lower(),
        "tables": [_document(read) for read in found.reads],
        "not_looked_at": list(found.unknown),
    }
    lines = [f"answered by: {found.source.value}"]
    for read in found.reads:
        lines.extend(_lines(read))
    lines.extend(f"{line(name)}: only Spark knows what it reads" for name in found.unknown)
    return Explanation(tuple(lines), document)


def _lines(read: TableRead) -> Iterator[str]:
    total = read.snapshot.num_files
    yield f"{read.table}@v{read.snapshot.version}: {number_of(total, 'file')}, {read.files_read} read"
    for reason in read.skipped.reasons:
        yield f"  {reason.files.num_rows} skipped by {_why(read, reason)}"
    if read.by_limit:
        yield f"  {read.by_limit} skipped by the limit: the other files have enough rows"
    if read.by_log and read.skipped.read.num_rows:
        yield f"  {read.skipped.read.num_rows} not opened: the log has the answer"


def _why(read: TableRead, reason: SkipReason) -> str:
    text = line(_condition_text(reason.part))
    if reason.by is SkippedBy.PARTITION_VALUES:
        return f"{reason.by.value}: {text}"
    ranges = _ranges(read, reason)
    known = f" of {', '.join(f'{name} [{low}, {high}]' for name, low, high in ranges)}" if ranges else ""
    return f"{reason.by.value}{line(known)}: {text}"


def _ranges(read: TableRead, reason: SkipReason) -> list[tuple[str, Any, Any]]:
    """Returns the common bounds of the excluded files, for each column of the condition that has bounds."""
    named: dict[tuple[str, ...], expressions.Column] = {
        column.parts: column for column in expressions.columns(reason.part)
    }
    bounds = column_bounds(reason.files.combine_chunks(), read.snapshot.metadata, list(named.values()))
    found = []
    for column in named.values():
        field = field_at(read.snapshot.schema, column.parts)
        low, high = (None, None) if field is None else ends(bounds.get(column), field.type)
        if low is not None or high is not None:
            found.append((_column_text(column), low, high))
    return found


def _document(read: TableRead) -> dict[str, Any]:
    return {
        "table": read.table,
        "version": read.snapshot.version,
        "files": read.snapshot.num_files,
        "files_read": read.files_read,
        "skipped": [
            {
                "files": reason.files.num_rows,
                "by": reason.by.name.lower(),
                "condition": _condition_text(reason.part),
                "ranges": [{"column": name, "min": low, "max": high} for name, low, high in _ranges(read, reason)],
            }
            for reason in read.skipped.reasons
        ],
        "skipped_by_limit": read.by_limit,
        "answered_by_log": read.by_log,
        "size_in_bytes_read": 0 if read.by_log else _size(read.skipped.read),
    }


def _size(files: pa.Table) -> int:
    return sum(files["size"].to_pylist())


def _condition_text(condition: expressions.Expression) -> str:
    """Returns the condition; its unknown parts become `...`."""
    match condition:
        case expressions.Constant():
            return "..."
        case expressions.And(parts):
            return " and ".join(map(_inner, parts)) or "true"
        case expressions.Or(parts):
            return " or ".join(map(_inner, parts)) or "false"
        case expressions.Not(part):
            return f"not {_inner(part)}"
        case expressions.IsNull(column):
            return f"{_column_text(column)} is null"
        case expressions.IsNotNull(column):
            return f"{_column_text(column)} is not null"
        case expressions.StartsWith(column, prefix):
            return f"{_column_text(column)} like {_value(prefix + '%')}"
        case expressions.Comparison(operator, column, value):
            return f"{_column_text(column)} {operator} {_value(value)}"
        case expressions.In(column, values):
            shown = [*map(_value, values[:_FEW]), *(["..."] if len(values) > _FEW else [])]
            return f"{_column_text(column)} in ({', '.join(shown)})"


def _column_text(column: expressions.Column) -> str:
    return ".".join(part if part.isidentifier() else quote(part) for part in column.parts)


def _inner(part: expressions.Expression) -> str:
    text = _condition_text(part)
    return f"({text})" if isinstance(part, expressions.And | expressions.Or) else text


def _value(value: expressions.Value | None) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, datetime):
        return f"'{value.isoformat(sep=' ').replace('+00:00', 'Z')}'"
    if isinstance(value, date | str):
        return "'" + str(value).replace("'", "\\'") + "'"
    return f"X'{value.hex()}'" if isinstance(value, bytes) else str(value)

"""The grammar of table maintenance: ANALYZE, OPTIMIZE, VACUUM, RESTORE, CONVERT."""

from __future__ import annotations

from dataclasses import replace

from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.cursor import Cursor, FirstWords


def _analyze(cursor: Cursor) -> ast.Statement:
    """Parses ANALYZE TABLE name ... | ANALYZE TABLES [IN schema] ..."""
    cursor.expect("ANALYZE")
    if cursor.take("TABLES"):
        name = cursor.name("a schema's name") if cursor.take_any("IN", "FROM") else None
        kind = ast.ObjectKind.SCHEMA
    else:
        cursor.expect("TABLE")
        name, kind = cursor.name(), ast.ObjectKind.TABLE
    cursor.rest("COMPUTE STATISTICS")
    return ast.Analyze(text=cursor.statement, kind=kind, name=name)


def _optimize(cursor: Cursor) -> ast.Statement:
    """Parses OPTIMIZE [TABLE] name [FULL] [WHERE condition] [ZORDER BY (columns)] | OPTIMIZE TABLES ..."""
    cursor.expect("OPTIMIZE")
    if cursor.at("TABLES") and cursor.ahead(1).word in ("IN", "BUDGET", "("):
        return _optimize_tables(cursor)
    cursor.optional_keyword("TABLE")
    statement = ast.Optimize(text=cursor.statement, table=cursor.name_or_path())
    statement = replace(statement, full=cursor.take("FULL"))
    if cursor.take("WHERE"):
        statement = replace(statement, condition=cursor.until("ZORDER", what="a condition"))
    if cursor.take("ZORDER", "BY"):
        in_parentheses = cursor.at("(")
        columns = cursor.listed(Cursor.column_path) if in_parentheses else cursor.separated(Cursor.column_path)
        statement = replace(statement, zorder_by=columns)
    return statement


def _optimize_tables(cursor: Cursor) -> ast.Statement:
    """Parses OPTIMIZE TABLES [IN schema] [(name, ...)] BUDGET 'time' [DRY RUN]."""
    cursor.expect("TABLES")
    schema = cursor.name("a schema's name") if cursor.take("IN") else None
    names = cursor.listed(Cursor.name) if cursor.at("(") else ()
    cursor.expect("BUDGET")
    budget = cursor.string("a length of time, as in '5 minutes'")
    dry_run = cursor.take("DRY", "RUN")
    return ast.OptimizeTables(text=cursor.statement, schema=schema, names=names, budget=budget, dry_run=dry_run)


def _vacuum(cursor: Cursor) -> ast.Statement:
    """Parses VACUUM name [LITE | FULL] [RETAIN n HOURS] [DRY RUN]."""
    cursor.expect("VACUUM")
    cursor.optional_keyword("TABLE")
    statement = ast.Vacuum(text=cursor.statement, table=cursor.name_or_path())
    while not cursor.at_end:
        if cursor.take("RETAIN"):
            statement = replace(statement, retain_hours=cursor.until("HOURS", "HOUR", what="a number of hours"))
            if cursor.take_any("HOURS", "HOUR") is None:
                raise cursor.expected("HOURS")
        elif cursor.take("DRY", "RUN"):
            statement = replace(statement, dry_run=True)
        elif cursor.take("LITE"):
            statement = replace(statement, lite=True)
        elif cursor.take("USING", "INVENTORY"):
            cursor.rest("an inventory")
            statement = replace(statement, unsupported=("USING INVENTORY",))
        elif not cursor.take("FULL"):
            raise cursor.expected("RETAIN n HOURS, DRY RUN, LITE or FULL")
    return statement


def _restore(cursor: Cursor) -> ast.Statement:
    """Parses RESTORE [TABLE] name TO VERSION | TIMESTAMP AS OF value."""
    cursor.expect("RESTORE")
    cursor.optional_keyword("TABLE")
    table = cursor.name_or_path()
    cursor.take("TO")
    to = cursor.time_travel()
    if to is None:
        raise cursor.expected("TO VERSION AS OF or TO TIMESTAMP AS OF")
    return ast.Restore(text=cursor.statement, table=table, to=to)


def _convert(cursor: Cursor) -> ast.Statement | None:
    """Parses CONVERT TO DELTA name [NO STATISTICS] [PARTITIONED BY (column type, ...)]."""
    if not cursor.take("CONVERT", "TO", "DELTA"):
        return None
    statement = ast.ConvertToDelta(text=cursor.statement, source=cursor.name_or_path())
    while not cursor.at_end:
        if cursor.take("NO", "STATISTICS"):
            statement = replace(statement, statistics=False)
        elif cursor.take("PARTITIONED", "BY"):
            statement = replace(statement, partitioned_by=cursor.listed(_typed_column))
        else:
            raise cursor.expected("NO STATISTICS or PARTITIONED BY")
    return statement


def _typed_column(cursor: Cursor) -> ast.ColumnDefinition:
    (name,) = cursor.column_path()[:1]
    return ast.ColumnDefinition(name, cursor.until(",", what="a type"))


FIRST_WORDS: FirstWords = {
    "ANALYZE": _analyze,
    "OPTIMIZE": _optimize,
    "VACUUM": _vacuum,
    "RESTORE": _restore,
    "CONVERT": _convert,
}

"""The grammar of DESCRIBE and SHOW."""

from __future__ import annotations

from collections.abc import Mapping

from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.cursor import Cursor, FirstWords
from dbt.adapters.silt.engine.sql.spans import starts_query
from dbt.adapters.silt.engine.sql.tokens import Kind


def _describe(cursor: Cursor) -> ast.Statement | None:
    """Parses DESCRIBE of a table, its history or detail, a query, a schema or a function; None for any other object."""
    cursor.take_any("DESCRIBE", "DESC")
    names_follow = cursor.ahead(1).is_identifier or cursor.ahead(1).kind in (Kind.STRING, Kind.DOUBLE_QUOTED)
    if names_follow and cursor.take("HISTORY"):
        table = cursor.name_or_path()
        return ast.DescribeHistory(text=cursor.statement, table=table, limit=_limit(cursor))
    if names_follow and cursor.take("DETAIL"):
        return ast.DescribeDetail(text=cursor.statement, table=cursor.name_or_path())
    if names_follow and cursor.take_any("SCHEMA", "DATABASE", "NAMESPACE"):
        extended = _option(cursor, "EXTENDED")
        return ast.DescribeSchema(text=cursor.statement, name=cursor.name("a schema's name"), extended=extended)
    if cursor.at("FUNCTION") and cursor.ahead(1).kind is not Kind.END:
        return _function(cursor)
    if names_follow and cursor.at_any("CATALOG", "PROCEDURE", "VOLUME", "SHARE"):
        return None
    if cursor.at("QUERY") and cursor.ahead(1).word != "." and cursor.ahead(1).kind is not Kind.END:
        cursor.at_token += 1
        return ast.DescribeQuery(text=cursor.statement, query=cursor.rest())
    if not cursor.at("TABLE") and (cursor.at("(") or starts_query(cursor.tokens, cursor.at_token)):
        return ast.DescribeQuery(text=cursor.statement, query=cursor.rest())
    return _table(cursor)


def _parse_show(cursor: Cursor) -> ast.Statement | None:
    """Parses SHOW of objects of the catalog; None for any other object."""
    cursor.expect("SHOW")
    for words, what in _SHOWN.items():
        if cursor.take(*words):
            return _show(cursor, what)
    if cursor.ahead(1).word == "FUNCTIONS":
        scope = cursor.identifier().lower()
        cursor.expect("FUNCTIONS")
        return _show(cursor, ast.ShowKind.FUNCTIONS, scope)
    return None


def _table(cursor: Cursor) -> ast.Statement:
    _option(cursor, "TABLE")
    extended = _option(cursor, "EXTENDED") or _option(cursor, "FORMATTED")
    name = cursor.name_or_path()
    unsupported = ("PARTITION",) if cursor.partition() else ()
    column = None if cursor.at_end or cursor.at("AS", "JSON") else cursor.column_path()
    if cursor.take("AS", "JSON"):
        unsupported = (*unsupported, "AS JSON")
    return ast.DescribeTable(
        text=cursor.statement, table=name, extended=extended, column=column, unsupported=unsupported
    )


def _option(cursor: Cursor, word: str) -> bool:
    """Steps over an optional keyword, unless it is itself the name. Returns whether it did."""
    before = cursor.at_token
    cursor.optional_keyword(word)
    return cursor.at_token > before


def _limit(cursor: Cursor) -> int | None:
    if not cursor.take("LIMIT"):
        return None
    if not cursor.token.text.isdecimal():
        raise cursor.expected("a number")
    cursor.at_token += 1
    return int(cursor.tokens[cursor.at_token - 1].text)


def _function(cursor: Cursor) -> ast.Statement:
    cursor.expect("FUNCTION")
    extended = _option(cursor, "EXTENDED")
    if cursor.token.kind is Kind.SYMBOL:
        cursor.at_token += 1
        name: ast.Name = ()
    elif cursor.token.kind in (Kind.STRING, Kind.DOUBLE_QUOTED):
        name = (cursor.string(),)
    else:
        name = cursor.name("a function's name")
    return ast.DescribeFunction(text=cursor.statement, name=name, extended=extended)


_SHOWN: Mapping[tuple[str, ...], ast.ShowKind] = {
    ("TABLES",): ast.ShowKind.TABLES,
    ("TABLE", "EXTENDED"): ast.ShowKind.TABLE_EXTENDED,
    ("VIEWS",): ast.ShowKind.VIEWS,
    ("SCHEMAS",): ast.ShowKind.SCHEMAS,
    ("DATABASES",): ast.ShowKind.SCHEMAS,
    ("NAMESPACES",): ast.ShowKind.SCHEMAS,
    ("CATALOGS",): ast.ShowKind.CATALOGS,
    ("COLUMNS",): ast.ShowKind.COLUMNS,
    ("CREATE", "TABLE"): ast.ShowKind.CREATE_TABLE,
    ("TBLPROPERTIES",): ast.ShowKind.PROPERTIES,
    ("PARTITIONS",): ast.ShowKind.PARTITIONS,
    ("FUNCTIONS",): ast.ShowKind.FUNCTIONS,
}
_OF_A_TABLE = frozenset((ast.ShowKind.CREATE_TABLE, ast.ShowKind.PROPERTIES, ast.ShowKind.PARTITIONS))


def _show(cursor: Cursor, what: ast.ShowKind, scope: str | None = None) -> ast.Statement:
    if what in _OF_A_TABLE:
        return _show_of_table(cursor, what)
    name: ast.Name | None = None
    if cursor.take_any("FROM", "IN"):
        name = cursor.name("a table's name" if what is ast.ShowKind.COLUMNS else "a schema's name")
    if what is ast.ShowKind.COLUMNS:
        if name is None:
            raise cursor.expected("IN and a table's name")
        if cursor.take_any("FROM", "IN"):
            name = (*cursor.name("a schema's name"), *name)
    pattern = _pattern(cursor)
    unsupported = ("PARTITION",) if cursor.partition() else ()
    return ast.Show(text=cursor.statement, what=what, name=name, pattern=pattern, scope=scope, unsupported=unsupported)


def _show_of_table(cursor: Cursor, what: ast.ShowKind) -> ast.Statement:
    name = cursor.name()
    key = None
    unsupported: tuple[str, ...] = ()
    if what is ast.ShowKind.PROPERTIES and cursor.at("("):
        inside = cursor.group_cursor()
        key = inside.property_key()
        inside.finished()
    if what is ast.ShowKind.PARTITIONS and cursor.partition():
        unsupported = ("PARTITION",)
    if what is ast.ShowKind.CREATE_TABLE and cursor.take("AS", "SERDE"):
        unsupported = ("AS SERDE",)
    return ast.Show(text=cursor.statement, what=what, name=name, key=key, unsupported=unsupported)


def _pattern(cursor: Cursor) -> str | None:
    """Parses [LIKE] 'pattern'; a pattern of functions may be a bare name."""
    if cursor.take("LIKE") and cursor.token.is_identifier:
        return ".".join(cursor.dotted())
    return cursor.string() if cursor.token.kind in (Kind.STRING, Kind.DOUBLE_QUOTED) else None


FIRST_WORDS: FirstWords = {
    "DESCRIBE": _describe,
    "DESC": _describe,
    "SHOW": _parse_show,
}

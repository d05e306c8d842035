"""The grammar of the session: USE, SET, RESET, CALL, EXECUTE IMMEDIATE and Spark's cache."""

from __future__ import annotations

from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.cursor import Cursor, FirstWords
from dbt.adapters.silt.engine.sql.tokens import Kind, tokenize

TIME_ZONE = "spark.sql.session.timeZone"
_ELSEWHERE = {
    "WAREHOUSE": "Leave it out: one Spark runs every statement",
    "ROLE": "Leave it out: everyone who can read the warehouse's folder or bucket can read its tables",
    "SECONDARY": "Leave it out: everyone who can read the warehouse's folder or bucket can read its tables",
}
_OF_TRANSACTION = ("TRANSACTION", "WORK")


def _use(cursor: Cursor) -> ast.Statement:
    """Parses USE [SCHEMA | CATALOG] name.

    Raises:
        UnsupportedStatementError: for the objects of other platforms.
    """
    cursor.expect("USE")
    kind = None
    if cursor.ahead(1).is_identifier:
        elsewhere = _ELSEWHERE.get(cursor.token.word)
        if elsewhere is not None:
            raise UnsupportedStatementError("it is a statement of another platform", remedy=elsewhere)
        word = cursor.take_any("SCHEMA", "DATABASE", "NAMESPACE", "CATALOG")
        kind = None if word is None else ast.ObjectKind.DATABASE if word == "CATALOG" else ast.ObjectKind.SCHEMA
    return ast.Use(text=cursor.statement, name=cursor.name("a schema's name"), kind=kind)


def _set_setting(cursor: Cursor) -> ast.Statement | None:
    """Parses SET key = value; None if it sets a variable, a role or a collation."""
    cursor.expect("SET")
    if cursor.take("CATALOG"):
        name = (cursor.string(),) if cursor.token.kind is Kind.STRING else cursor.name("a catalog's name")
        return ast.Use(text=cursor.statement, name=name, kind=ast.ObjectKind.DATABASE)
    if cursor.take("TIME", "ZONE"):
        zone = cursor.string() if cursor.token.kind in (Kind.STRING, Kind.DOUBLE_QUOTED) else cursor.rest("a time zone")
        return ast.SetSetting(text=cursor.statement, key=TIME_ZONE, value=zone)
    if cursor.at_any("VAR", "VARIABLE", "ROLE", "COLLATION", "PATH") and cursor.ahead(1).word not in ("=", "."):
        return None
    if cursor.at_end or cursor.at("-"):
        _skip_all(cursor)
        return ast.SetSetting(text=cursor.statement)
    key = _key(cursor)
    value = None
    if cursor.take("="):
        value = _raw(cursor)
    return ast.SetSetting(text=cursor.statement, key=key, value=value)


def _reset_setting(cursor: Cursor) -> ast.Statement:
    """Parses RESET [key]."""
    cursor.expect("RESET")
    return ast.ResetSetting(text=cursor.statement, key=None if cursor.at_end else _key(cursor))


def _begin(cursor: Cursor) -> ast.Statement | None:
    """Parses BEGIN [TRANSACTION | WORK] or START TRANSACTION; None for other statements with START."""
    if cursor.take("START"):
        return ast.Begin(text=cursor.statement) if cursor.take("TRANSACTION") else None
    cursor.expect("BEGIN")
    cursor.take_any(*_OF_TRANSACTION)
    return ast.Begin(text=cursor.statement)


def _commit(cursor: Cursor) -> ast.Statement:
    """Parses COMMIT [TRANSACTION | WORK]."""
    cursor.expect("COMMIT")
    cursor.take_any(*_OF_TRANSACTION)
    return ast.Commit(text=cursor.statement)


def _rollback(cursor: Cursor) -> ast.Statement:
    """Parses ROLLBACK [TRANSACTION | WORK]."""
    cursor.expect("ROLLBACK")
    cursor.take_any(*_OF_TRANSACTION)
    return ast.Rollback(text=cursor.statement)


def _call(cursor: Cursor) -> ast.Statement:
    """Parses CALL procedure(...)."""
    cursor.expect("CALL")
    procedure = cursor.name("a procedure's name")
    cursor.group()
    return ast.Call(text=cursor.statement, procedure=procedure)


def _cache(cursor: Cursor) -> ast.Statement:
    """Parses CACHE [LAZY] TABLE name [OPTIONS (...)] [[AS] query]."""
    cursor.expect("CACHE")
    cursor.take("LAZY")
    cursor.expect("TABLE")
    name = cursor.name()
    if cursor.take("OPTIONS"):
        cursor.properties()
    cursor.take("AS")
    return ast.Cache(text=cursor.statement, table=name, query=None if cursor.at_end else cursor.rest())


def _uncache(cursor: Cursor) -> ast.Statement:
    """Parses UNCACHE TABLE [IF EXISTS] name."""
    cursor.expect("UNCACHE", "TABLE")
    cursor.if_exists()
    return ast.Uncache(text=cursor.statement, table=cursor.name())


def _clear_cache(cursor: Cursor) -> ast.Statement:
    """Parses CLEAR CACHE."""
    cursor.expect("CLEAR", "CACHE")
    return ast.Uncache(text=cursor.statement, table=None)


def _refresh(cursor: Cursor) -> ast.Statement | None:
    """Parses REFRESH [TABLE] name; None for a function or a path."""
    cursor.expect("REFRESH")
    if cursor.take("TABLE"):
        return ast.Refresh(text=cursor.statement, table=cursor.name())
    return None


def _key(cursor: Cursor) -> str:
    """Returns the text up to `=`, without enclosing backquotes."""
    if cursor.token.kind is Kind.QUOTED:
        return cursor.identifier()
    return cursor.until("=", what="a setting")


def _raw(cursor: Cursor) -> str:
    """Returns the remaining text verbatim, without enclosing backquotes."""
    if cursor.token.kind is Kind.QUOTED and cursor.ahead(1).kind is Kind.END:
        return cursor.identifier()
    first = cursor.at_token
    _skip_all(cursor)
    return cursor.cut(first, cursor.at_token)


def _skip_all(cursor: Cursor) -> None:
    cursor.at_token = len(cursor.tokens) - 1


def immediate(text: str) -> str | None:
    """Returns the expression whose value EXECUTE IMMEDIATE runs as a statement, if it is such a statement.

    Raises:
        StatementSyntaxError: if it is incomplete, or another statement follows.
        UnsupportedStatementError: if it has parameters, or stores its result in variables.
    """
    cursor = Cursor(text, tokenize(text))
    if not cursor.take("EXECUTE", "IMMEDIATE"):
        return None
    expression = cursor.until("INTO", "USING", ";", what="a statement as a string")
    if cursor.at_any("INTO", "USING"):
        raise UnsupportedStatementError(
            f"EXECUTE IMMEDIATE ... {cursor.token.word} is not supported",
            remedy="Write the values into the statement's string, and read the result from the statement itself",
        )
    while cursor.take(";"):
        pass
    cursor.finished()
    return expression


FIRST_WORDS: FirstWords = {
    "USE": _use,
    "SET": _set_setting,
    "RESET": _reset_setting,
    "BEGIN": _begin,
    "START": _begin,
    "COMMIT": _commit,
    "ROLLBACK": _rollback,
    "CALL": _call,
    "CACHE": _cache,
    "UNCACHE": _uncache,
    "CLEAR": _clear_cache,
    "REFRESH": _refresh,
}

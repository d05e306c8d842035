"""The grammar of INSERT, in all the forms that Spark and Delta accept."""

from __future__ import annotations

from dataclasses import replace

from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.sql.ast import Insert, InsertDirectory, InsertMode, Statement
from dbt.adapters.silt.engine.sql.cursor import Cursor, FirstWords
from dbt.adapters.silt.engine.sql.grammar.clauses import changed_keys
from dbt.adapters.silt.engine.sql.spans import after_group, starts_query, starts_query_in_parentheses
from dbt.adapters.silt.engine.sql.tokens import Kind


def _insert(cursor: Cursor) -> Statement:
    """Parses INSERT [WITH SCHEMA EVOLUTION] INTO | OVERWRITE [TABLE] name ... query."""
    first = cursor.at_token
    cursor.expect("INSERT")
    schema_evolution = cursor.take("WITH", "SCHEMA", "EVOLUTION")
    verb = cursor.take_any("INTO", "OVERWRITE")
    if verb is None:
        raise cursor.expected("INTO or OVERWRITE")
    if verb == "OVERWRITE" and (cursor.at("DIRECTORY") or cursor.at("LOCAL", "DIRECTORY")):
        return _directory(cursor, first)
    cursor.optional_keyword("TABLE")
    statement = Insert(
        text=cursor.statement,
        table=cursor.name(),
        query="",
        mode=InsertMode.INTO if verb == "INTO" else InsertMode.OVERWRITE,
        unsupported=_write_options(cursor),
        alias=cursor.alias(*_AFTER_NAME),
        schema_evolution=schema_evolution,
    )
    return _with_query(cursor, _replacement(cursor, _destination(cursor, statement)))


def refuse_multi_insert(cursor: Cursor) -> None:
    """Refuses FROM ... INSERT ... INSERT ..., which writes several tables.

    Raises:
        UnsupportedStatementError: if it is such a statement.
    """
    index = cursor.at_token
    while cursor.tokens[index].kind is not Kind.END:
        token = cursor.tokens[index]
        if token.word == "INSERT" and cursor.tokens[index + 1].word in ("INTO", "OVERWRITE"):
            raise UnsupportedStatementError(
                "FROM ... INSERT cannot be run", remedy="Write INSERT INTO ... SELECT, once for each table"
            )
        index = after_group(cursor.tokens, index) if token.word == "(" else index + 1


_SET_OPERATIONS = ("UNION", "EXCEPT", "INTERSECT", "MINUS", "ORDER", "SORT", "DISTRIBUTE", "CLUSTER", "LIMIT", "OFFSET")
_AFTER_NAME = ("PARTITION", "IF", "BY", "REPLACE", "(", "SELECT", "WITH", "VALUES", "TABLE", "FROM", "MAP", "REDUCE")


def _write_options(cursor: Cursor) -> tuple[str, ...]:
    if not cursor.at("WITH", "("):
        return ()
    cursor.at_token += 1
    cursor.properties()
    return ("WITH (options)",)


def _destination(cursor: Cursor, statement: Insert) -> Insert:
    """Parses [PARTITION (...)] [IF NOT EXISTS] [BY NAME | (columns)]."""
    partition = cursor.partition()
    if_not_exists = cursor.if_not_exists()
    by_name = cursor.take("BY", "NAME")
    columns = () if by_name or not _at_column_list(cursor) else cursor.listed(Cursor.column)
    return replace(statement, partition=partition, if_not_exists=if_not_exists, by_name=by_name, columns=columns)


def _at_column_list(cursor: Cursor) -> bool:
    """Returns whether the parentheses that open here contain column names, not a query."""
    return cursor.at("(") and cursor.ahead(1).is_identifier and cursor.ahead(2).word in (",", ")")


def _replacement(cursor: Cursor, statement: Insert) -> Insert:
    """Parses REPLACE WHERE condition, USING (columns), CHANGED KEYS (columns) or ON condition, or nothing."""
    if statement.mode is not InsertMode.INTO or not cursor.take("REPLACE"):
        return statement
    if cursor.take("USING"):
        return replace(statement, mode=InsertMode.REPLACE_USING, using=cursor.listed(Cursor.column))
    if cursor.take("WHERE"):
        return replace(statement, mode=InsertMode.REPLACE_WHERE, condition=_condition(cursor))
    if cursor.take("CHANGED", "KEYS"):
        return replace(statement, mode=InsertMode.REPLACE_CHANGED, changed_keys=changed_keys(cursor))
    cursor.expect("ON")
    return replace(statement, mode=InsertMode.REPLACE_ON, condition=_condition(cursor))


def _with_query(cursor: Cursor, statement: Insert) -> Insert:
    if not statement.by_name:
        statement = replace(statement, by_name=cursor.take("BY", "NAME"))
    if not statement.columns and not statement.by_name and _at_column_list(cursor):
        statement = replace(statement, columns=cursor.listed(Cursor.column))
    if statement.mode is InsertMode.REPLACE_ON and cursor.at("("):
        return _with_alias(cursor, statement)
    return replace(statement, query=_query(cursor))


def _with_alias(cursor: Cursor, statement: Insert) -> Insert:
    """Parses (query) [AS alias], or a query that only begins with parentheses."""
    first = cursor.at_token
    query, alias = cursor.group(), cursor.alias(*_SET_OPERATIONS)
    if cursor.at_end:
        return replace(statement, query=query, source_alias=alias)
    cursor.at_token = first
    return replace(statement, query=_query(cursor))


def _query(cursor: Cursor) -> str:
    scripts = cursor.at_any("MAP", "REDUCE") or cursor.at("(", "MAP") or cursor.at("(", "REDUCE")
    if not (scripts or starts_query_in_parentheses(cursor.tokens, cursor.at_token)):
        raise cursor.expected("a query")
    refuse_multi_insert(cursor)
    return cursor.rest()


def _directory(cursor: Cursor, first: int) -> Statement:
    while not starts_query(cursor.tokens, cursor.at_token):
        if cursor.at_end:
            raise cursor.expected("a query")
        cursor.at_token = after_group(cursor.tokens, cursor.at_token) if cursor.at("(") else cursor.at_token + 1
    head = cursor.cut(first, cursor.at_token)
    return InsertDirectory(text=cursor.statement, head=head, query=_query(cursor))


def _condition(cursor: Cursor) -> str:
    """Parses a condition up to the beginning of the query.

    The query begins at the first query keyword outside of parentheses. If no such keyword exists, or each belongs to a
    set operation, the query begins at a parenthesis at which no operator expects a value.
    """
    first = index = cursor.at_token
    in_parentheses = None
    while cursor.tokens[index].kind is not Kind.END:
        before = cursor.tokens[index - 1].word
        if cursor.tokens[index].word == "(":
            if in_parentheses is None and _could_be_query(cursor, index):
                in_parentheses = index
            index = after_group(cursor.tokens, index)
            continue
        if before not in _BEFORE_OPERAND and starts_query(cursor.tokens, index):
            break
        index += 1
    else:
        index = index if in_parentheses is None else in_parentheses
    cursor.at_token = index
    if index == first:
        raise cursor.expected("a condition")
    if cursor.at_end:
        raise cursor.expected("a query")
    return cursor.cut(first, index)


_BEFORE_OPERAND = frozenset("UNION EXCEPT INTERSECT MINUS ALL DISTINCT .".split())
_ASKS_FOR_VALUE = frozenset("AND OR NOT IN EXISTS BETWEEN LIKE ILIKE RLIKE REGEXP DIV ANY SOME ALL FROM".split())


def _could_be_query(cursor: Cursor, index: int) -> bool:
    before = cursor.tokens[index - 1]
    ends_value = before.word in (")", "]") if before.kind is Kind.SYMBOL else before.word not in _ASKS_FOR_VALUE
    return ends_value and starts_query_in_parentheses(cursor.tokens, index)


FIRST_WORDS: FirstWords = {"INSERT": _insert}

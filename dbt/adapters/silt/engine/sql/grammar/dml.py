"""The grammar of DELETE, UPDATE, MERGE and TRUNCATE."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from dbt.adapters.silt.engine.kernel.identifiers import quote, quoted_list
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.cursor import Cursor, FirstWords
from dbt.adapters.silt.engine.sql.tokens import tokenize


def _delete(cursor: Cursor) -> ast.Statement:
    """Parses DELETE FROM name [alias] [WHERE condition]."""
    cursor.expect("DELETE", "FROM")
    table, alias = cursor.name(), cursor.alias("WHERE", "USING")
    if cursor.at("USING"):
        raise cursor.error("DELETE has no USING", _MERGE.format("delete"))
    return ast.Delete(text=cursor.statement, table=table, alias=alias, condition=_where(cursor))


def _update(cursor: Cursor) -> ast.Statement:
    """Parses UPDATE name [alias] SET column = value, ... [WHERE condition]."""
    cursor.expect("UPDATE")
    table, alias = cursor.name(), cursor.alias("SET")
    cursor.expect("SET")
    assignments = cursor.separated(_assignment(",", "WHERE"))
    if any(_reads_a_table(each.value) for each in assignments):
        raise cursor.error("UPDATE has no FROM", _MERGE.format("update set ..."))
    return ast.Update(
        text=cursor.statement, table=table, alias=alias, assignments=assignments, condition=_where(cursor)
    )


_MERGE = "Write `merge into t using s on ... when matched then {}`"


def _reads_a_table(value: str) -> bool:
    """Returns whether the value of an assignment is followed by FROM, as in UPDATE of other platforms."""
    tokens, depth = tokenize(value), 0
    for before, token in pairwise(tokens):
        depth += (before.word == "(") - (before.word == ")")
        if depth == 0 and token.word == "FROM" and before.word not in ("DISTINCT", "."):
            return True
    return False


def _truncate(cursor: Cursor) -> ast.Statement:
    """Parses TRUNCATE TABLE name [PARTITION (...)]."""
    cursor.expect("TRUNCATE", "TABLE")
    table = cursor.name()
    return ast.Truncate(text=cursor.statement, table=table, partition=cursor.partition())


def _merge(cursor: Cursor) -> ast.Statement:
    """Parses MERGE [WITH SCHEMA EVOLUTION] [SKIP EQUAL ROWS] INTO name [alias] USING source ON condition WHEN ..."""
    cursor.expect("MERGE")
    schema_evolution = cursor.take("WITH", "SCHEMA", "EVOLUTION")
    skips_equal_rows = cursor.take("SKIP", "EQUAL", "ROWS")
    cursor.expect("INTO")
    table, alias = cursor.name(), cursor.alias("USING")
    cursor.expect("USING")
    source = _source(cursor)
    cursor.expect("ON")
    condition = cursor.until("WHEN", what="a condition")
    clauses: list[ast.MergeClause] = []
    while cursor.at("WHEN"):
        clauses.append(_clause(cursor))
    if not clauses:
        raise cursor.expected("WHEN MATCHED or WHEN NOT MATCHED")
    return ast.Merge(
        text=cursor.statement,
        table=table,
        source=source,
        condition=condition,
        clauses=tuple(clauses),
        alias=alias,
        schema_evolution=schema_evolution,
        skips_equal_rows=skips_equal_rows,
    )


def _source(cursor: Cursor) -> ast.MergeSource:
    """Parses a query in parentheses or a relation, with optional alias and column aliases."""
    name = None
    if cursor.at("("):
        relation = query = cursor.group()
        if not query:
            raise cursor.expected("a query in the parentheses")
        relation = f"({query})"
    else:
        relation, name = _relation(cursor)
        query = f"SELECT * FROM {relation}"
    alias = cursor.alias("ON")
    if alias is not None and cursor.at("("):
        columns = quoted_list(cursor.listed(Cursor.column))
        query = f"SELECT * FROM {relation} AS {quote(alias)} ({columns})"
    return ast.MergeSource(query, name=name, alias=alias)


def _relation(cursor: Cursor) -> tuple[str, ast.Name | None]:
    """Returns the text of a table with time travel or of a table-valued function, and the table's name, if any."""
    first = cursor.at_token
    name: ast.Name | None = cursor.dotted("a table or a query in parentheses")
    if cursor.at("("):
        cursor.group()
        name = None
    elif cursor.take("@"):
        cursor.at_token += 1
    cursor.time_travel()
    return cursor.cut(first, cursor.at_token), name


def _clause(cursor: Cursor) -> ast.MergeClause:
    cursor.expect("WHEN")
    kind = _match_kind(cursor)
    condition = cursor.until("THEN", what="a condition") if cursor.take("AND") else None
    cursor.expect("THEN")
    return ast.MergeClause(kind, _action(cursor, kind), condition)


def _match_kind(cursor: Cursor) -> ast.MatchKind:
    if cursor.take("MATCHED"):
        return ast.MatchKind.MATCHED
    if not (cursor.take("NOT", "MATCHED") or cursor.take("!", "MATCHED")):
        raise cursor.expected("MATCHED or NOT MATCHED")
    if cursor.take("BY", "SOURCE"):
        return ast.MatchKind.NOT_MATCHED_BY_SOURCE
    cursor.take("BY", "TARGET")
    return ast.MatchKind.NOT_MATCHED


def _action(cursor: Cursor, kind: ast.MatchKind) -> ast.MergeAction:
    if kind is ast.MatchKind.NOT_MATCHED:
        cursor.expect("INSERT")
        return ast.InsertAll() if cursor.take("*") else _insert_values(cursor)
    if cursor.take("DELETE"):
        return ast.DeleteRow()
    if not cursor.take("UPDATE", "SET"):
        raise cursor.expected("UPDATE SET or DELETE")
    if cursor.at("*"):
        if kind is ast.MatchKind.NOT_MATCHED_BY_SOURCE:
            raise cursor.error("UPDATE SET * takes its values from a source row, which does not exist here")
        cursor.expect("*")
        return ast.UpdateAll()
    return ast.UpdateSet(cursor.separated(_assignment(",", "WHEN")))


def _insert_values(cursor: Cursor) -> ast.InsertValues:
    columns = cursor.listed(Cursor.column_path) if cursor.at("(") else ()
    if cursor.at("ROW"):
        raise cursor.error("INSERT ROW is not supported", "Write `insert *`")
    cursor.expect("VALUES")
    values = cursor.listed(lambda inside: inside.until(",", what="a value"))
    if columns and len(columns) != len(values):
        raise cursor.error(f"the INSERT names {len(columns)} columns, but has {len(values)} values")
    return ast.InsertValues(columns, values)


def _where(cursor: Cursor) -> str | None:
    return cursor.rest("a condition") if cursor.take("WHERE") else None


def _assignment(*stops: str) -> Callable[[Cursor], ast.Assignment]:
    """Returns a parser of `column = value`, in which the value ends before any of these words."""

    def assignment(cursor: Cursor) -> ast.Assignment:
        column = cursor.column_path()
        if not cursor.take_any("=", "=="):
            raise cursor.expected("=")
        return ast.Assignment(column, cursor.until(*stops, what="a value"))

    return assignment


FIRST_WORDS: FirstWords = {
    "DELETE": _delete,
    "UPDATE": _update,
    "MERGE": _merge,
    "TRUNCATE": _truncate,
}

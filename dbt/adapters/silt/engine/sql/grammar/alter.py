"""The grammar of ALTER TABLE and ALTER VIEW."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.cursor import Cursor, FirstWords
from dbt.adapters.silt.engine.sql.grammar.table import (
    clustering_columns,
    column_type,
    constraint,
    default_value,
    identity,
)
from dbt.adapters.silt.engine.sql.spans import starts_query


def _alter(cursor: Cursor) -> ast.Statement | None:
    """Parses ALTER TABLE | VIEW name action; None for any other ALTER."""
    cursor.expect("ALTER")
    word = cursor.take_any("TABLE", "VIEW")
    if word is None:
        return None
    kind = ast.ObjectKind.TABLE if word == "TABLE" else ast.ObjectKind.VIEW
    name = cursor.name()
    first = cursor.at_token
    statement = _shared_action(cursor, kind, name)
    if (
        statement is None
        and kind is ast.ObjectKind.VIEW
        and (cursor.at("AS") or cursor.at("(") or starts_query(cursor.tokens, cursor.at_token))
    ):
        statement = _alter_view_query(cursor, name)
    if statement is None and kind is ast.ObjectKind.TABLE:
        statement = _table_action(cursor, name)
    if statement is None:
        cursor.at_token = first
        action = cursor.rest("an action such as ADD COLUMN or RENAME TO")
        statement = ast.AlterOther(text=cursor.statement, kind=kind, name=name, unsupported=(action,))
    return statement


def _shared_action(cursor: Cursor, kind: ast.ObjectKind, name: ast.Name) -> ast.Statement | None:
    """Parses the actions that tables and views share: RENAME TO and properties."""
    if cursor.take("RENAME", "TO"):
        return ast.Rename(text=cursor.statement, kind=kind, name=name, new_name=cursor.name("the new name"))
    if cursor.take("SET", "TBLPROPERTIES"):
        return ast.SetProperties(text=cursor.statement, kind=kind, name=name, properties=cursor.properties())
    if cursor.take("UNSET", "TBLPROPERTIES"):
        if_exists = cursor.if_exists()
        keys = tuple(cursor.properties())
        return ast.UnsetProperties(text=cursor.statement, kind=kind, name=name, keys=keys, if_exists=if_exists)
    return None


def _table_action(cursor: Cursor, table: ast.Name) -> ast.Statement | None:
    for words, parse_action in _ACTIONS.items():
        if cursor.take(*words):
            return parse_action(cursor, table)
    if (
        cursor.at("ADD", "CONSTRAINT")
        or cursor.at("ADD", "CHECK")
        or cursor.at("ADD", "PRIMARY", "KEY")
        or cursor.at("ADD", "FOREIGN", "KEY")
        or cursor.at("ADD", "UNIQUE")
    ):
        cursor.expect("ADD")
        found = constraint(cursor)
        if found is not None:
            return ast.AddConstraint(text=cursor.statement, table=table, constraint=found)
    return None


def _add_columns(cursor: Cursor, table: ast.Name) -> ast.Statement:
    if_not_exists = cursor.if_not_exists()
    columns = cursor.listed(_new_column) if cursor.at("(") else cursor.separated(_new_column)
    return ast.AddColumns(text=cursor.statement, table=table, columns=columns, if_not_exists=if_not_exists)


def _new_column(cursor: Cursor) -> ast.NewColumn:
    column = ast.NewColumn(cursor.column_path(), column_type(cursor))
    while not (cursor.at_end or cursor.at(",")):
        if cursor.not_null():
            column = replace(column, nullable=False)
        elif cursor.take("COMMENT"):
            column = replace(column, comment=cursor.string())
        elif cursor.take("DEFAULT"):
            column = replace(column, default=default_value(cursor))
        elif cursor.take("GENERATED"):
            column = replace(column, generated=_generated(cursor))
        elif cursor.at_any("FIRST", "AFTER"):
            column = replace(column, position=_position(cursor))
        elif not cursor.take("NULL"):
            raise cursor.expected("a comma, NOT NULL, COMMENT, DEFAULT, GENERATED, FIRST or AFTER")
    return column


def _generated(cursor: Cursor) -> str:
    """Parses the text after GENERATED: ALWAYS AS (expression).

    Raises:
        UnsupportedStatementError: if it is an identity column.
    """
    if identity(cursor) is not None:
        raise UnsupportedStatementError(
            "an identity column cannot be added to a table: existing rows have no numbers",
            remedy="Re-create the table with `create or replace table ... as select`",
        )
    cursor.expect("ALWAYS", "AS")
    return cursor.group().strip()


def _position(cursor: Cursor) -> ast.Position:
    if cursor.take("FIRST"):
        return ast.Position()
    cursor.expect("AFTER")
    return ast.Position(after=cursor.column())


def _drop_columns(cursor: Cursor, table: ast.Name) -> ast.Statement:
    if_exists = cursor.if_exists()
    columns = cursor.listed(Cursor.column_path) if cursor.at("(") else cursor.separated(Cursor.column_path)
    return ast.DropColumns(text=cursor.statement, table=table, columns=columns, if_exists=if_exists)


def _rename_column(cursor: Cursor, table: ast.Name) -> ast.Statement:
    path = cursor.column_path()
    cursor.expect("TO")
    change = ast.ColumnChange(path, new_name=cursor.identifier("the new name"))
    return ast.AlterColumns(text=cursor.statement, table=table, changes=(change,))


def _alter_columns(cursor: Cursor, table: ast.Name) -> ast.Statement:
    changes = cursor.separated(_column_change)
    return ast.AlterColumns(text=cursor.statement, table=table, changes=changes, unsupported=_other_actions(cursor))


def _column_change(cursor: Cursor) -> ast.ColumnChange:
    change = ast.ColumnChange(cursor.column_path())
    while not (cursor.at_end or cursor.at(",")):
        if cursor.take("COMMENT"):
            change = replace(change, comment=cursor.string())
        elif cursor.take("SET", "DATA", "TYPE") or cursor.take("TYPE"):
            change = replace(change, type=column_type(cursor))
        elif cursor.take("SET", "NOT", "NULL"):
            change = replace(change, nullable=False)
        elif cursor.take("DROP", "NOT", "NULL"):
            change = replace(change, nullable=True)
        elif cursor.take("SET", "DEFAULT"):
            change = replace(change, default=cursor.until(",", what="a default value"))
        elif cursor.take("DROP", "DEFAULT"):
            change = replace(change, default="")
        elif cursor.at_any("FIRST", "AFTER"):
            change = replace(change, position=_position(cursor))
        elif cursor.at_any("SET", "DROP"):
            break
        else:
            raise cursor.expected("COMMENT, TYPE, SET or DROP NOT NULL or DEFAULT, FIRST or AFTER")
    return change


def _other_actions(cursor: Cursor) -> tuple[str, ...]:
    """Returns the rest of an ALTER COLUMN (tags, masks), as written."""
    return () if cursor.at_end else (f"ALTER COLUMN {cursor.rest()}",)


def _change_column(cursor: Cursor, table: ast.Name) -> ast.Statement:
    """Parses Hive's CHANGE [COLUMN] old new type [COMMENT] [FIRST | AFTER], or the syntax of ALTER COLUMN."""
    path = cursor.column_path()
    if cursor.at_any("COMMENT", "TYPE", "SET", "DROP", "FIRST", "AFTER"):
        cursor.at_token -= 2 * len(path) - 1
        return _alter_columns(cursor, table)
    column = _new_column(cursor)
    if column.generated is not None:
        raise UnsupportedStatementError(
            f"the existing column `{'.'.join(path)}` cannot become a generated column",
            remedy="Add a generated column under another name",
        )
    new_name = None if column.path[-1] == path[-1] else column.path[-1]
    change = ast.ColumnChange(path, new_name, column.type, column.comment, None, column.position)
    return ast.AlterColumns(text=cursor.statement, table=table, changes=(change,))


def _drop_constraint(cursor: Cursor, table: ast.Name) -> ast.Statement:
    if_exists = cursor.if_exists()
    name = cursor.identifier("a constraint's name")
    cursor.take_any("RESTRICT", "CASCADE")
    return ast.DropConstraint(text=cursor.statement, table=table, constraint=name, if_exists=if_exists)


def _cluster_by(cursor: Cursor, table: ast.Name) -> ast.Statement:
    columns, is_auto = clustering_columns(cursor)
    unsupported = ("CLUSTER BY AUTO",) if is_auto else ()
    return ast.AlterClustering(text=cursor.statement, table=table, columns=columns, unsupported=unsupported)


_ACTIONS: Mapping[tuple[str, ...], Callable[[Cursor, ast.Name], ast.Statement]] = {
    ("ADD", "COLUMNS"): _add_columns,
    ("ADD", "COLUMN"): _add_columns,
    ("DROP", "COLUMNS"): _drop_columns,
    ("DROP", "COLUMN"): _drop_columns,
    ("RENAME", "COLUMN"): _rename_column,
    ("ALTER", "COLUMN"): _alter_columns,
    ("ALTER",): _alter_columns,
    ("CHANGE", "COLUMN"): _change_column,
    ("CHANGE",): _change_column,
    ("DROP", "CONSTRAINT"): _drop_constraint,
    ("CLUSTER", "BY"): _cluster_by,
}


FIRST_WORDS: FirstWords = {"ALTER": _alter}


def _alter_view_query(cursor: Cursor, name: tuple[str, ...]) -> ast.Statement:
    """Parses ALTER VIEW name [AS] query, with the cursor at AS or at the query."""
    cursor.take("AS")
    return ast.AlterViewQuery(text=cursor.statement, name=name, query=cursor.rest())

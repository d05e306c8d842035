"""The grammar of CREATE TABLE: columns, constraints, clauses, query, LIKE and CLONE."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.cursor import Cursor
from dbt.adapters.silt.engine.sql.grammar.clauses import changed_keys
from dbt.adapters.silt.engine.sql.spans import closing, starts_query
from dbt.adapters.silt.engine.sql.tokens import Kind


def create_table(cursor: Cursor, mode: ast.CreateMode, unsupported: tuple[str, ...]) -> ast.Statement:
    """Parses CREATE TABLE, with the cursor at the table's name."""
    name = cursor.name()
    if cursor.take("LIKE"):
        return _like(cursor, ast.CreateTableLike(text=cursor.statement, table=name, source=cursor.name(), mode=mode))
    if cursor.at("SHALLOW", "CLONE") or cursor.at("DEEP", "CLONE") or cursor.at("CLONE"):
        return _clone(cursor, name, mode)
    statement = ast.CreateTable(text=cursor.statement, table=name, mode=mode, unsupported=unsupported)
    if cursor.at("(") and not _at_query(cursor):
        statement = _with_parts(cursor, statement, _with_column_or_constraint)
    written: set[tuple[str, ...]] = set()
    while not cursor.at_end and not _at_query(cursor):
        statement = _with_clause(cursor, statement, written)
    if cursor.at_end:
        return statement
    cursor.take("AS")
    return replace(statement, query=cursor.rest())


def constraint(cursor: Cursor) -> ast.Constraint | None:
    """Parses [CONSTRAINT name] CHECK | PRIMARY KEY | FOREIGN KEY | UNIQUE ..., or nothing."""
    name = cursor.identifier("a constraint's name") if cursor.take("CONSTRAINT") else None
    if cursor.take("CHECK"):
        found = ast.Constraint(ast.ConstraintKind.CHECK, name, condition=cursor.group())
    elif cursor.take("PRIMARY", "KEY"):
        found = ast.Constraint(ast.ConstraintKind.PRIMARY_KEY, name, columns=_key_columns(cursor))
    elif cursor.take("FOREIGN", "KEY"):
        found = ast.Constraint(ast.ConstraintKind.FOREIGN_KEY, name, columns=_key_columns(cursor))
        found = _with_references(cursor, found)
    elif cursor.take("UNIQUE"):
        found = ast.Constraint(ast.ConstraintKind.UNIQUE, name, columns=_key_columns(cursor))
    elif cursor.at("REFERENCES"):
        found = _with_references(cursor, ast.Constraint(ast.ConstraintKind.FOREIGN_KEY, name))
    elif name is not None and cursor.at("EXPECT"):
        found = _expectation(cursor, name)
    elif name is not None:
        raise cursor.expected("CHECK, PRIMARY KEY, FOREIGN KEY or UNIQUE")
    else:
        return None
    return replace(found, enforced=_is_enforced(cursor))


def _expectation(cursor: Cursor, name: str) -> ast.Constraint:
    """Parses EXPECT (condition) ON VIOLATION DROP ROW | FAIL UPDATE: a CHECK, which may leave rows out."""
    cursor.expect("EXPECT")
    found = ast.Constraint(ast.ConstraintKind.CHECK, name, condition=cursor.group())
    if not cursor.take("ON", "VIOLATION"):
        raise UnsupportedStatementError(
            f"EXPECT ({name}) without ON VIOLATION is not supported: a table does not count the rows that break a rule",
            remedy="Add ON VIOLATION DROP ROW or FAIL UPDATE, or use an audit with a warning (`silt.audits`)",
        )
    if cursor.take("DROP", "ROW"):
        return replace(found, drops_rows=True)
    cursor.expect("FAIL", "UPDATE")
    return found


# A type ends before these words, unless they are inside its own brackets.
AFTER_TYPE = tuple(
    "NOT ! NULL DEFAULT GENERATED COMMENT FIRST AFTER CONSTRAINT CHECK PRIMARY UNIQUE REFERENCES FOREIGN MASK".split()
)


def column_type(cursor: Cursor) -> str:
    """Returns the text of a type."""
    first = cursor.at_token
    depth = 0
    while not cursor.at_end:
        word = cursor.token.word
        if depth == 0 and (word in (",", ")") or word in AFTER_TYPE):
            break
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(word, 0)
        cursor.at_token += 1
    if cursor.at_token == first:
        raise cursor.expected("a type")
    if depth:
        raise cursor.error("a bracket of this type is not closed")
    return cursor.cut(first, cursor.at_token)


def _at_query(cursor: Cursor) -> bool:
    """Returns whether the query comes next: AS, a query keyword, or a parenthesis with a query inside."""
    if cursor.at("AS"):
        return True
    index = cursor.at_token
    while cursor.tokens[index].word == "(":
        index += 1
    return starts_query(cursor.tokens, index) and not _is_column(cursor, index)


def _is_column(cursor: Cursor, index: int) -> bool:
    """Returns whether it is `(values int, ...)`: a column whose name is a query keyword."""
    token = cursor.tokens[index]
    if index == cursor.at_token or token.word not in ("VALUES", "TABLE", "FROM"):
        return False
    last = closing(cursor.tokens, cursor.at_token)
    inside = cursor.tokens[index + 1 : last]
    return bool(inside) and inside[0].is_identifier and (len(inside) == 1 or inside[1].word in (*AFTER_TYPE, ",", "<"))


# Columns


def _with_parts(
    cursor: Cursor, statement: ast.CreateTable, with_part: Callable[[Cursor, ast.CreateTable], ast.CreateTable]
) -> ast.CreateTable:
    inside = cursor.group_cursor()
    statement = with_part(inside, statement)
    while inside.take(","):
        statement = with_part(inside, statement)
    inside.finished()
    return statement


def _with_column_or_constraint(cursor: Cursor, statement: ast.CreateTable) -> ast.CreateTable:
    if _at_constraint(cursor):
        found = constraint(cursor)
        if found is not None:
            return replace(statement, constraints=(*statement.constraints, found))
    column = ast.ColumnDefinition(cursor.column())
    if not (cursor.at_end or cursor.at(",") or cursor.at_any(*AFTER_TYPE)):
        column = replace(column, type=column_type(cursor))
    while not (cursor.at_end or cursor.at(",")):
        found = constraint(cursor)
        if found is None:
            column = _with_option(cursor, column)
            continue
        if found.kind is not ast.ConstraintKind.CHECK and not found.columns:
            found = replace(found, columns=(column.name,))
        statement = replace(statement, constraints=(*statement.constraints, found))
    return replace(statement, columns=(*statement.columns, column))


def _at_constraint(cursor: Cursor) -> bool:
    return (
        cursor.at("PRIMARY", "KEY")
        or cursor.at("FOREIGN", "KEY")
        or (cursor.at("CONSTRAINT") and cursor.ahead(2).word in ("CHECK", "EXPECT", "PRIMARY", "FOREIGN", "UNIQUE"))
        or cursor.at("CHECK", "(")
        or cursor.at("UNIQUE", "(")
    )


def _with_option(cursor: Cursor, column: ast.ColumnDefinition) -> ast.ColumnDefinition:
    """Parses NOT NULL, COMMENT, DEFAULT or GENERATED of a column."""
    if cursor.not_null():
        return replace(column, nullable=False)
    if cursor.take("NULL"):
        return column
    if cursor.take("COMMENT"):
        _check_once(cursor, "COMMENT", column.comment is not None)
        return replace(column, comment=cursor.string())
    if cursor.take("DEFAULT"):
        _check_once(cursor, "DEFAULT", column.default is not None)
        return replace(column, default=default_value(cursor))
    if cursor.take("GENERATED"):
        if (found := identity(cursor)) is not None:
            return replace(column, identity=found)
        cursor.expect("ALWAYS", "AS")
        return replace(column, generated=cursor.group().strip())
    raise cursor.expected("a comma, NOT NULL, COMMENT or a constraint")


def default_value(cursor: Cursor) -> str:
    """Returns the text of a column's default, which ends before NOT NULL and other options of the column."""
    first = cursor.at_token
    while not (cursor.at_end or cursor.at_any(*_AFTER_DEFAULT) or _at_nullability(cursor, first)):
        if not cursor.take_any(*_NULLABILITY):
            cursor.until(*_AFTER_DEFAULT, *_NULLABILITY, what="a default value")
    if cursor.at_token == first:
        raise cursor.expected("a default value")
    return cursor.cut(first, cursor.at_token)


def _at_nullability(cursor: Cursor, first: int) -> bool:
    """Returns whether NOT NULL or NULL comes next as an option of the column, not as a part of its default."""
    if cursor.at_token == first:
        return False
    before = cursor.tokens[cursor.at_token - 1]
    if cursor.at("NOT", "NULL") or cursor.at("!", "NULL"):
        return before.word != "IS"
    return cursor.at("NULL") and (not before.word or before.word in _ENDS_OF_VALUES or before.kind is Kind.NUMBER)


def _check_once(cursor: Cursor, what: str, is_written: bool) -> None:
    if is_written:
        raise cursor.error(f"{what} is written twice", remedy="Write it once")


_AFTER_DEFAULT = (
    *(",", "COMMENT", "CONSTRAINT", "CHECK", "PRIMARY", "UNIQUE", "REFERENCES", "FIRST", "AFTER"),
    *("DEFAULT", "GENERATED"),
)
_NULLABILITY = ("NOT", "!", "NULL")
_ENDS_OF_VALUES = (")", "]", "END", "NULL", "TRUE", "FALSE")


def identity(cursor: Cursor) -> ast.IdentityClause | None:
    """Parses ALWAYS | BY DEFAULT AS IDENTITY [(...)] after GENERATED; None, without reading, for other text."""
    first = cursor.at_token
    by_default = cursor.take("BY", "DEFAULT")
    if not ((by_default or cursor.take("ALWAYS")) and cursor.take("AS", "IDENTITY")):
        cursor.at_token = first
        return None
    found: dict[str, int] = {}
    inside = cursor.group_cursor() if cursor.at("(") else None
    while inside is not None and not inside.at_end:
        if "start" not in found and inside.take("START", "WITH"):
            found["start"] = _whole_number(inside)
        elif "step" not in found and inside.take("INCREMENT", "BY"):
            found["step"] = _whole_number(inside)
        else:
            raise inside.expected("START WITH or INCREMENT BY, each once")
    if found.get("step") == 0:
        raise cursor.error("an identity column cannot be incremented by 0")
    return ast.IdentityClause(**found, by_default=by_default)


def _whole_number(cursor: Cursor) -> int:
    text = "".join(cursor.until("START", "INCREMENT", what="a whole number").split())
    if not _BIGINT.fullmatch(text) or not -(1 << 63) <= int(text) < 1 << 63:
        raise cursor.error(f"`{text}` is not a whole number of type bigint")
    return int(text)


_BIGINT = re.compile(r"[+-]?[0-9]+")


def _key_columns(cursor: Cursor) -> tuple[str, ...]:
    return cursor.listed(_key_column) if cursor.at("(") else ()


def _key_column(cursor: Cursor) -> str:
    name = cursor.column()
    cursor.take("TIMESERIES")
    return name


def _with_references(cursor: Cursor, key: ast.Constraint) -> ast.Constraint:
    cursor.expect("REFERENCES")
    key = replace(key, references=cursor.name(), referenced_columns=_key_columns(cursor))
    while cursor.take("ON", "UPDATE") or cursor.take("ON", "DELETE") or cursor.take("MATCH"):
        cursor.until("ON", "MATCH", ",", *_CHARACTERISTICS, what="an action")
    return key


_CHARACTERISTICS = ("NOT", "ENFORCED", "DEFERRABLE", "INITIALLY", "NORELY", "RELY")


def _is_enforced(cursor: Cursor) -> bool:
    """Returns whether [NOT] ENFORCED, [NO]RELY and similar words include ENFORCED; this engine ignores the rest."""
    enforced = False
    while cursor.at_any("ENFORCED", "DEFERRABLE", "INITIALLY", "NORELY", "RELY") or (
        cursor.at("NOT") and cursor.ahead(1).word in _CHARACTERISTICS
    ):
        enforced = enforced or cursor.at("ENFORCED")
        cursor.at_token += 2 if cursor.at("INITIALLY") or cursor.at("NOT") else 1
    return enforced


# Clauses


def _with_clause(cursor: Cursor, statement: ast.CreateTable, written: set[tuple[str, ...]]) -> ast.CreateTable:
    """Parses a clause, and adds its words to `written`."""
    for words, parse_clause in _CLAUSES.items():
        if cursor.take(*words):
            _check_once(cursor, " ".join(words), words in written)
            written.add(words)
            return parse_clause(cursor, statement)
    if not cursor.at_any(*_OTHER_CLAUSES):
        raise cursor.expected("a clause of CREATE TABLE, or AS and a query")
    return replace(statement, unsupported=(*statement.unsupported, _other_clause(cursor)))


def _other_clause(cursor: Cursor) -> str:
    """Returns the text of an unsupported clause, up to the next clause or the query."""
    first = cursor.at_token
    while not cursor.at_end:
        cursor.at_token += 2 if cursor.ahead(1).word == "AS" else 1  # STORED AS, NULL DEFINED AS
        while cursor.at("("):
            cursor.group()
        starts_clause = cursor.at_any(*_OTHER_CLAUSES) or any(cursor.at(*words) for words in _CLAUSES)
        if starts_clause or _at_query(cursor):
            break
    return cursor.cut(first, cursor.at_token)


_OTHER_CLAUSES = ("ROW", "STORED", "SKEWED", "CLUSTERED", "DEFAULT", "WITH")


def _using(cursor: Cursor, statement: ast.CreateTable) -> ast.CreateTable:
    return replace(statement, using=".".join(cursor.dotted("a format")).lower())


def _partitioned_by(cursor: Cursor, statement: ast.CreateTable) -> ast.CreateTable:
    return _with_parts(cursor, statement, _with_partition)


def _with_partition(cursor: Cursor, statement: ast.CreateTable) -> ast.CreateTable:
    first = cursor.at_token
    name = cursor.column_path()
    if cursor.at("("):
        cursor.group()
        transform = f"PARTITIONED BY {cursor.cut(first, cursor.at_token)}"
        return replace(statement, unsupported=(*statement.unsupported, transform))
    if not (cursor.at_end or cursor.at(",")):
        cursor.at_token = first
        statement = _with_column_or_constraint(cursor, statement)
    return replace(statement, partitioned_by=(*statement.partitioned_by, ".".join(name)))


def _cluster_by(cursor: Cursor, statement: ast.CreateTable) -> ast.CreateTable:
    columns, is_auto = clustering_columns(cursor)
    unsupported = ("CLUSTER BY AUTO",) if is_auto else ()
    return replace(statement, clustered_by=columns, unsupported=(*statement.unsupported, *unsupported))


def clustering_columns(cursor: Cursor) -> tuple[tuple[ast.Name, ...], bool]:
    """Parses the columns after CLUSTER BY, none for NONE, and whether it is AUTO instead."""
    if cursor.take("NONE"):
        return (), False
    return ((), True) if cursor.take("AUTO") else (cursor.listed(Cursor.column_path), False)


_CLAUSES: Mapping[tuple[str, ...], Callable[[Cursor, ast.CreateTable], ast.CreateTable]] = {
    ("USING",): _using,
    ("PARTITIONED", "BY"): _partitioned_by,
    ("CLUSTER", "BY"): _cluster_by,
    ("COMMENT",): lambda cursor, statement: replace(statement, comment=cursor.string()),
    ("LOCATION",): lambda cursor, statement: replace(statement, location=cursor.string()),
    ("TBLPROPERTIES",): lambda cursor, statement: replace(statement, properties=cursor.properties()),
    ("CHANGED", "KEYS"): lambda cursor, statement: replace(statement, changed_keys=changed_keys(cursor)),
    ("WRITE", "DIFFERENCES", "BY"): lambda cursor, statement: replace(
        statement, differences_by=cursor.listed(Cursor.column)
    ),
    ("OPTIONS",): lambda cursor, statement: replace(statement, options=cursor.properties()),
}


# LIKE and CLONE


def _like(cursor: Cursor, statement: ast.CreateTableLike) -> ast.CreateTableLike:
    while not cursor.at_end:
        if cursor.take("USING"):
            statement = replace(statement, using=".".join(cursor.dotted("a format")).lower())
        elif cursor.take("LOCATION"):
            statement = replace(statement, location=cursor.string())
        elif cursor.take("TBLPROPERTIES"):
            statement = replace(statement, properties=cursor.properties())
        elif cursor.at_any(*_OTHER_CLAUSES):
            statement = replace(statement, unsupported=(*statement.unsupported, cursor.rest()))
        else:
            raise cursor.expected("USING, LOCATION or TBLPROPERTIES")
    return statement


def _clone(cursor: Cursor, name: tuple[str, ...], mode: ast.CreateMode) -> ast.Statement:
    shallow = cursor.take("SHALLOW")
    cursor.take("DEEP")
    cursor.expect("CLONE")
    source, at = versioned_name(cursor)
    statement = ast.Clone(text=cursor.statement, table=name, source=source, shallow=shallow, mode=mode, at=at)
    while not cursor.at_end:
        if cursor.take("TBLPROPERTIES"):
            statement = replace(statement, properties=cursor.properties())
        elif cursor.take("LOCATION"):
            statement = replace(statement, location=cursor.string())
        else:
            raise cursor.expected("TBLPROPERTIES or LOCATION")
    return statement


def versioned_name(cursor: Cursor) -> tuple[tuple[str, ...], ast.TimeTravel | None]:
    """Parses a table's name, with the version or time that may follow it."""
    return cursor.name(), cursor.time_travel()

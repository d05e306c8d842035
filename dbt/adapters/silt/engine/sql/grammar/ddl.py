"""The grammar of CREATE, DROP and COMMENT ON, of objects other than tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.cursor import Cursor, FirstWords
from dbt.adapters.silt.engine.sql.grammar.table import column_type, create_table

SCHEMA_WORDS = ("SCHEMA", "DATABASE", "NAMESPACE")
TEMPORARY_WORDS = ("TEMPORARY", "TEMP")


def _create(cursor: Cursor) -> ast.Statement | None:
    """Parses CREATE or REPLACE of a table, view, schema or function; None for any other object."""
    mode = ast.CreateMode.CREATE
    if cursor.take("REPLACE"):
        mode = ast.CreateMode.REPLACE
    else:
        cursor.expect("CREATE")
        if cursor.take("OR", "REPLACE"):
            mode = ast.CreateMode.CREATE_OR_REPLACE
    external = cursor.take("EXTERNAL")
    is_global = cursor.take("GLOBAL")
    temporary = cursor.take_any(*TEMPORARY_WORDS) is not None
    if cursor.take("TABLE"):
        unsupported = tuple(word for word, is_there in (("EXTERNAL", external), ("TEMPORARY", temporary)) if is_there)
        return create_table(cursor, if_not_exists(cursor, mode), unsupported)
    if cursor.take("VIEW"):
        scope = (
            ast.ViewScope.GLOBAL_TEMPORARY
            if is_global
            else ast.ViewScope.TEMPORARY
            if temporary
            else ast.ViewScope.PERSISTENT
        )
        return _create_view(cursor, if_not_exists(cursor, mode), scope)
    if cursor.take("FUNCTION"):
        return _create_function(cursor, if_not_exists(cursor, mode), temporary)
    if cursor.take_any(*SCHEMA_WORDS):
        return _create_schema(cursor, if_not_exists(cursor, mode))
    return None


def _drop(cursor: Cursor) -> ast.Statement | None:
    """Parses DROP of a table, view, schema or function; None for any other object."""
    cursor.expect("DROP")
    temporary = cursor.take_any(*TEMPORARY_WORDS) is not None
    if cursor.take_any(*SCHEMA_WORDS):
        if_exists, name = cursor.if_exists(), cursor.name("a schema's name")
        cascade = cursor.take_any("CASCADE", "RESTRICT") == "CASCADE"
        return ast.DropSchema(text=cursor.statement, name=name, if_exists=if_exists, cascade=cascade)
    if cursor.take("TABLE"):
        if_exists, name = cursor.if_exists(), cursor.name()
        return ast.DropTable(text=cursor.statement, table=name, if_exists=if_exists, purge=cursor.take("PURGE"))
    if cursor.take("VIEW"):
        if_exists = cursor.if_exists()
        return ast.DropView(text=cursor.statement, name=cursor.name("a view's name"), if_exists=if_exists)
    if cursor.take("FUNCTION"):
        if_exists = cursor.if_exists()
        name = cursor.name("a function's name")
        return ast.DropFunction(text=cursor.statement, name=name, if_exists=if_exists, temporary=temporary)
    return None


def _comment_on(cursor: Cursor) -> ast.Statement | None:
    """Parses COMMENT ON kind name IS 'text' | NULL."""
    cursor.expect("COMMENT", "ON")
    kind = _COMMENTED.get(cursor.token.word)
    if kind is None:
        return None
    cursor.at_token += 1
    name = cursor.name("a name")
    cursor.expect("IS")
    comment = None if cursor.take("NULL") else cursor.string("a string or NULL")
    return ast.CommentOn(text=cursor.statement, kind=kind, name=name, comment=comment)


def if_not_exists(cursor: Cursor, mode: ast.CreateMode) -> ast.CreateMode:
    """Returns the mode, taking IF NOT EXISTS into account.

    Raises:
        StatementSyntaxError: if the statement also has REPLACE.
    """
    if not cursor.at("IF", "NOT") and not cursor.at("IF", "!"):
        return mode
    if mode is not ast.CreateMode.CREATE:
        raise cursor.error("REPLACE and IF NOT EXISTS cannot be combined")
    return ast.CreateMode.CREATE_IF_NOT_EXISTS if cursor.if_not_exists() else mode


_COMMENTED: Mapping[str, ast.ObjectKind] = {
    "TABLE": ast.ObjectKind.TABLE,
    "VIEW": ast.ObjectKind.VIEW,
    "COLUMN": ast.ObjectKind.COLUMN,
    "CATALOG": ast.ObjectKind.DATABASE,
    **dict.fromkeys(SCHEMA_WORDS, ast.ObjectKind.SCHEMA),
}


def _create_schema(cursor: Cursor, mode: ast.CreateMode) -> ast.Statement:
    statement = ast.CreateSchema(text=cursor.statement, name=cursor.name("a schema's name"), mode=mode)
    while not cursor.at_end:
        if cursor.take("COMMENT"):
            statement = replace(statement, comment=cursor.string())
        elif cursor.take("LOCATION") or cursor.take("MANAGED", "LOCATION"):
            statement = replace(statement, location=cursor.string())
        elif cursor.take("WITH", "DBPROPERTIES") or cursor.take("WITH", "PROPERTIES"):
            statement = replace(statement, properties=cursor.properties())
        else:
            raise cursor.expected("COMMENT, LOCATION or WITH DBPROPERTIES")
    return statement


def _create_view(cursor: Cursor, mode: ast.CreateMode, scope: ast.ViewScope) -> ast.Statement:
    name = cursor.name("a view's name")
    if scope is not ast.ViewScope.PERSISTENT and (cursor.at("USING") or _types_before_using(cursor)):
        return _create_view_using(cursor, name)
    statement = ast.CreateView(text=cursor.statement, name=name, query="", mode=mode, scope=scope)
    if cursor.at("("):
        statement = replace(statement, columns=_view_columns(cursor))
    while not cursor.take("AS"):
        statement = _view_clause(cursor, statement)
    return replace(statement, query=cursor.rest())


def _view_clause(cursor: Cursor, statement: ast.CreateView) -> ast.CreateView:
    if cursor.take("COMMENT"):
        return replace(statement, comment=cursor.string())
    if cursor.take("TBLPROPERTIES"):
        return replace(statement, properties=cursor.properties())
    if cursor.take("DEFAULT", "COLLATION"):
        collation = cursor.identifier("a collation")
        return replace(statement, unsupported=(*statement.unsupported, f"DEFAULT COLLATION {collation}"))
    if cursor.take("WITH", "SCHEMA"):
        binding = cursor.until(
            "AS", "COMMENT", "TBLPROPERTIES", "WITH", what="how the view follows its tables' columns"
        )
        if binding.upper() == "BINDING":
            return statement
        return replace(statement, unsupported=(*statement.unsupported, f"WITH SCHEMA {binding}"))
    raise cursor.expected("AS and a query")


def _view_columns(cursor: Cursor) -> tuple[ast.ViewColumn, ...]:
    """Parses the columns of a view; a path is a field inside a column that is listed before it."""
    columns: dict[str, ast.ViewColumn] = {}
    others: list[ast.ViewColumn] = []
    for (name, *path), comment in cursor.listed(_view_column):
        known = columns.get(name.lower())
        if path and (known is None or comment is None):
            field = ".".join((name, *path))
            raise cursor.error(f"the field `{field}` of a view needs a comment, and its column before it")
        if known is None:
            columns[name.lower()] = ast.ViewColumn(name, comment)
        elif path:
            columns[name.lower()] = replace(known, fields=(*known.fields, (tuple(path), comment or "")))
        else:
            others.append(ast.ViewColumn(name, comment))
    return (*columns.values(), *others)


def _view_column(cursor: Cursor) -> tuple[ast.Name, str | None]:
    return cursor.column_path(), cursor.string() if cursor.take("COMMENT") else None


def _types_before_using(cursor: Cursor) -> bool:
    """Returns whether a list of columns with types and USING come next."""
    inner = Cursor(cursor.source, cursor.tokens[cursor.at_token :])
    if not inner.at("("):
        return False
    inner.group()
    return inner.at("USING")


def _create_view_using(cursor: Cursor, name: tuple[str, ...]) -> ast.Statement:
    if cursor.at("("):
        cursor.group()
    cursor.expect("USING")
    using = ".".join(cursor.dotted("a data source")).lower()
    options = cursor.properties() if cursor.take("OPTIONS") else {}
    return ast.CreateViewUsing(text=cursor.statement, name=name, using=using, options=options)


def _create_function(cursor: Cursor, mode: ast.CreateMode, temporary: bool) -> ast.Statement:
    """Parses name (parameters) [RETURNS type] [characteristics] RETURN body | AS 'code'; or AS 'a Java class'."""
    statement = ast.CreateFunction(
        text=cursor.statement, name=cursor.name("a function's name"), mode=mode, temporary=temporary
    )
    if not cursor.at("("):
        cursor.rest("AS or the function's parameters")
        return statement
    statement = replace(statement, parameters=_parameters(cursor))
    if cursor.take("RETURNS"):
        statement = replace(statement, returns=cursor.until(*_AFTER_RETURNS, what="a type"))
    while not cursor.at_any("RETURN", "AS"):
        statement = _characteristic(cursor, statement)
    if statement.language is not None:
        cursor.expect("AS")
        return replace(statement, body=cursor.string("the function's code as a string"))
    if cursor.take("AS"):
        cursor.rest("a Java class")
        return statement
    cursor.expect("RETURN")
    return replace(statement, body=cursor.rest("an expression or a query"))


def _parameters(cursor: Cursor) -> tuple[ast.Parameter, ...]:
    if cursor.at("(", ")"):
        cursor.at_token += 2
        return ()
    return cursor.listed(_parameter)


def _parameter(cursor: Cursor) -> ast.Parameter:
    name = cursor.identifier("a parameter")
    parameter = ast.Parameter(name, column_type(cursor))
    while not cursor.at_end and not cursor.at(","):
        if cursor.take("DEFAULT"):
            parameter = replace(parameter, default=cursor.until(",", "COMMENT", what="a default value"))
        elif cursor.take("COMMENT"):
            parameter = replace(parameter, comment=cursor.string())
        else:
            raise cursor.expected("DEFAULT or COMMENT")
    return parameter


def _characteristic(cursor: Cursor, statement: ast.CreateFunction) -> ast.CreateFunction:
    """Parses a clause between the type and the body; clauses that Spark derives itself are read and dropped."""
    if cursor.take("COMMENT"):
        return replace(statement, comment=cursor.string())
    if cursor.take("NOT", "DETERMINISTIC"):
        return replace(statement, deterministic=False)
    if cursor.take("DETERMINISTIC"):
        return replace(statement, deterministic=True)
    if cursor.take("LANGUAGE"):
        name = cursor.identifier("a language").upper()
        return statement if name == "SQL" else replace(statement, language=ast.Language(name))
    if statement.language is not None and cursor.at_any(*_OF_A_LANGUAGE):
        return replace(statement, language=_option(cursor, statement.language))
    if cursor.take("CONTAINS", "SQL") or cursor.take("READS", "SQL", "DATA"):
        return statement
    if cursor.take("SQL", "SECURITY"):
        security = cursor.identifier("INVOKER or DEFINER").upper()
        return replace(statement, unsupported=(*statement.unsupported, f"SQL SECURITY {security}"))
    raise cursor.expected("RETURN and the function's body")


def _option(cursor: Cursor, language: ast.Language) -> ast.Language:
    word = cursor.take_any(*_OF_A_LANGUAGE)
    cursor.take("=")
    if word == "HANDLER":
        return replace(language, handler=cursor.string("a function of the code, as a string"))
    if word == "RUNTIME_VERSION":
        return replace(language, runtime_version=cursor.string("a version as a string"))
    return replace(language, packages=cursor.listed(lambda inside: inside.string("a package as a string")))


_OF_A_LANGUAGE = ("HANDLER", "RUNTIME_VERSION", "PACKAGES")
_AFTER_RETURNS = tuple("RETURN COMMENT LANGUAGE DETERMINISTIC NOT CONTAINS READS SQL AS".split())


FIRST_WORDS: FirstWords = {
    "CREATE": _create,
    "REPLACE": _create,
    "DROP": _drop,
    "COMMENT": _comment_on,
}

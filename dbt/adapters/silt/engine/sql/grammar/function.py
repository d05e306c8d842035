"""The grammar of CREATE FUNCTION."""

from __future__ import annotations

from dataclasses import replace

from dbt.adapters.silt.engine.sql.ast import CreateFunction, CreateMode, Language, Parameter, Statement
from dbt.adapters.silt.engine.sql.cursor import Cursor
from dbt.adapters.silt.engine.sql.grammar.table import column_type


def create_function(cursor: Cursor, mode: CreateMode, temporary: bool) -> Statement:
    """Parses name (parameters) [RETURNS type] [characteristics] RETURN body | AS 'code'; or AS 'a Java class'."""
    statement = CreateFunction(
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


def _parameters(cursor: Cursor) -> tuple[Parameter, ...]:
    if cursor.at("(", ")"):
        cursor.at_token += 2
        return ()
    return cursor.listed(_parameter)


def _parameter(cursor: Cursor) -> Parameter:
    name = cursor.identifier("a parameter")
    parameter = Parameter(name, column_type(cursor))
    while not cursor.at_end and not cursor.at(","):
        if cursor.take("DEFAULT"):
            parameter = replace(parameter, default=cursor.until(",", "COMMENT", what="a default value"))
        elif cursor.take("COMMENT"):
            parameter = replace(parameter, comment=cursor.string())
        else:
            raise cursor.expected("DEFAULT or COMMENT")
    return parameter


def _characteristic(cursor: Cursor, statement: CreateFunction) -> CreateFunction:
    """Parses a clause between the type and the body; clauses that Spark derives itself are read and dropped."""
    if cursor.take("COMMENT"):
        return replace(statement, comment=cursor.string())
    if cursor.take("NOT", "DETERMINISTIC"):
        return replace(statement, deterministic=False)
    if cursor.take("DETERMINISTIC"):
        return replace(statement, deterministic=True)
    if cursor.take("LANGUAGE"):
        name = cursor.identifier("a language").upper()
        return statement if name == "SQL" else replace(statement, language=Language(name))
    if statement.language is not None and cursor.at_any(*_OF_A_LANGUAGE):
        return replace(statement, language=_option(cursor, statement.language))
    if cursor.take("CONTAINS", "SQL") or cursor.take("READS", "SQL", "DATA"):
        return statement
    if cursor.take("SQL", "SECURITY"):
        security = cursor.identifier("INVOKER or DEFINER").upper()
        return replace(statement, unsupported=(*statement.unsupported, f"SQL SECURITY {security}"))
    raise cursor.expected("RETURN and the function's body")


def _option(cursor: Cursor, language: Language) -> Language:
    word = cursor.take_any(*_OF_A_LANGUAGE)
    cursor.take("=")
    if word == "HANDLER":
        return replace(language, handler=cursor.string("a function of the code, as a string"))
    if word == "RUNTIME_VERSION":
        return replace(language, runtime_version=cursor.string("a version as a string"))
    return replace(language, packages=cursor.listed(lambda inside: inside.string("a package as a string")))


_OF_A_LANGUAGE = ("HANDLER", "RUNTIME_VERSION", "PACKAGES")
_AFTER_RETURNS = tuple("RETURN COMMENT LANGUAGE DETERMINISTIC NOT CONTAINS READS SQL AS".split())

"""Runs CREATE, DROP and DESCRIBE FUNCTION; the catalog stores a function as SQL, which each call expands."""

from __future__ import annotations

from dataclasses import replace

from dbt.adapters.silt.engine.catalog.names.documents import Function, PythonHandler
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName, check_new_names
from dbt.adapters.silt.engine.commands.spark import python_function
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError, RelationExistsError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import CreateMode, Parameter
from dbt.adapters.silt.engine.sql.query.references import function_calls, table_references
from dbt.adapters.silt.engine.sql.tokens import tokenize
from dbt.adapters.silt.engine.statements.resolve import function_text
from dbt.adapters.silt.engine.statements.steps.context import Context, Result, Routes, pass_to_spark
from dbt.adapters.silt.engine.statements.steps.on_table import refuse_unsupported

_NOTHING = Result()
_EXISTS_REMEDY = "Use `create or replace function`"

_TITLE_WIDTH = 15


def _create_function(context: Context, statement: ast.CreateFunction) -> Result:
    """Runs CREATE FUNCTION ... RETURN, or LANGUAGE PYTHON: Spark checks that it can be called and computes nothing."""
    if statement.temporary:
        return _create_temporary(context, statement)
    name = context.namespace.writable(statement.name)
    if name is None:
        return pass_to_spark(context, statement)
    function = replace(_function(context, name, statement), inputs=context.resolver.earlier_inputs.names)
    try:
        if statement.mode is not CreateMode.CREATE_OR_REPLACE and context.catalog.has_function(name):
            raise RelationExistsError("the function already exists", table=str(name), remedy=_EXISTS_REMEDY)
        _check(context, function)
        context.catalog.put_function(function, replace=statement.mode is CreateMode.CREATE_OR_REPLACE)
    except RelationExistsError:
        if statement.mode is not CreateMode.CREATE_IF_NOT_EXISTS:
            raise
        context.catalog.note_lookup(name, is_function=True)
    return _NOTHING


def _drop_function(context: Context, statement: ast.DropFunction) -> Result:
    """Runs DROP FUNCTION on the warehouse's function of that name, otherwise on Spark's."""
    name = None if statement.temporary else context.namespace.name_in_warehouse(statement.name)
    if name is None or (not context.catalog.has_function(name) and _is_sparks(context, statement.name)):
        return pass_to_spark(context, statement)
    context.catalog.drop_function(name, if_exists=statement.if_exists)
    return _NOTHING


def _describe_function(context: Context, statement: ast.DescribeFunction) -> Result:
    """Runs DESCRIBE FUNCTION [EXTENDED], in Spark's format."""
    function = context.namespace.function(statement.name) if statement.name else None
    if function is None:
        return pass_to_spark(context, statement)
    lines = _description(function, statement.extended)
    return context.rows([(line,) for line in lines], "function_desc string")


def refuse_calls(context: Context, text: str | None, what: str, table: str) -> None:
    """Refuses a call of a warehouse's function in an expression that a table itself would store.

    Args:
        text: the expression, if any.
        what: the part of the table that contains the expression, for the message.

    Raises:
        UnsupportedStatementError: if the expression calls a function of a warehouse.
    """
    for call in function_calls(text or ""):
        function = context.namespace.function(call.parts)
        if function is not None:
            raise UnsupportedStatementError(
                f"{what} calls the function {function.name}, which other readers and writers of the table do not know",
                table=table,
                remedy="Write the function's expression instead of the call",
            )


def _create_temporary(context: Context, statement: ast.CreateFunction) -> Result:
    """Creates a temporary function of Spark; it would keep reading today's versions of tables."""
    body = statement.body if statement.language is None else None
    if body is not None and context.resolver.query(body).texts[0] != body:
        raise UnsupportedStatementError(
            "a temporary function cannot use tables, views or functions of a warehouse",
            table=".".join(statement.name),
            remedy="Use `create function`",
        )
    return pass_to_spark(context, statement)


def _function(context: Context, name: RelationName, statement: ast.CreateFunction) -> Function:
    """Returns the function as the catalog stores it.

    Raises:
        InvalidNameError: if a parameter or column name contains an invisible character.
        UnsupportedStatementError: if its language cannot be run.
    """
    refuse_unsupported(statement, str(name))
    given = tokenize(statement.returns or "")
    check_new_names(*(each.name for each in statement.parameters))
    check_new_names(*(token.identifier for token in given if token.is_identifier))
    language = statement.language or ast.Language("SQL")
    if statement.body is None or language.name not in ("SQL", "PYTHON"):
        raise UnsupportedStatementError(
            "only functions in SQL or Python can be stored in a warehouse",
            table=str(name),
            remedy="Write it as RETURN expression",
        )
    return Function(
        name=name,
        parameters=tuple(_kept(context, parameter) for parameter in statement.parameters),
        body=statement.body if language.name == "PYTHON" else context.kept(statement.body),
        returns=statement.returns,
        deterministic=statement.deterministic,
        python=_handler(name, statement),
        comment=statement.comment,
        current_database=context.namespace.database,
        current_schema=context.namespace.schema,
    )


def _kept(context: Context, parameter: ast.Parameter) -> ast.Parameter:
    default = None if parameter.default is None else context.kept(parameter.default)
    return replace(parameter, default=default)


def _handler(name: RelationName, statement: ast.CreateFunction) -> PythonHandler | None:
    language = statement.language
    if language is None:
        return None
    if language.handler is None or statement.returns is None:
        raise InvalidStatementError(
            "a function in Python needs RETURNS, and the HANDLER to call", table=str(name), remedy="Add them"
        )
    return PythonHandler(language.handler, language.packages, language.runtime_version)


def _check(context: Context, function: Function) -> None:
    """Raises the errors that a call of the function would raise."""
    if function.python is None:
        _refuse_body(context, function.name, function.body)
    else:
        python_function.check(function_text.python_code(function, function.python))
    context.resolver.check(function)


def _refuse_body(context: Context, name: RelationName, body: str) -> None:
    for reference in table_references(body):
        if context.namespace.is_temporary(reference.parts):
            raise InvalidStatementError(
                f"a permanent function cannot read the temporary view `{reference.parts[0]}`",
                table=str(name),
                remedy="Read a view or a table",
            )
    for call in function_calls(body):
        if context.namespace.name_in_warehouse(call.parts) == name and not _is_sparks(context, call.parts):
            raise InvalidStatementError("the function would call itself", table=str(name), remedy="Break the cycle")


def _is_sparks(context: Context, name: ast.Name) -> bool:
    """Returns whether a single-part name is a function that Spark itself knows."""
    return len(name) == 1 and context.spark.catalog.functionExists(quote(name[0]))


ROUTES: Routes = {
    ast.CreateFunction: _create_function,
    ast.DropFunction: _drop_function,
    ast.DescribeFunction: _describe_function,
}


def _description(function: Function, extended: bool) -> list[str]:
    """Returns the lines of DESCRIBE FUNCTION, as Spark writes them."""
    facts = {
        "Function": str(function.name),
        "Type": "TABLE" if (function.returns or "").split("(")[0].strip().lower() == "table" else "SCALAR",
        "Input": "\n".join(map(_parameter_line, function.parameters)) or "()",
        "Returns": function.returns,
    }
    if extended:
        certainty = {None: None, True: "true", False: "false"}[function.deterministic]
        language = None if function.python is None else f"PYTHON, handler {function.python.name}"
        facts |= {"Comment": function.comment, "Deterministic": certainty, "Language": language}
        facts["Body"] = function.body
    return [line for title, text in facts.items() if text is not None for line in _lines(title, text)]


def _lines(title: str, text: str) -> list[str]:
    first, *others = text.split("\n")
    return [f"{title + ':':{_TITLE_WIDTH}}{first}", *(f"{'':{_TITLE_WIDTH}}{other}" for other in others)]


def _parameter_line(parameter: Parameter) -> str:
    comment = "" if parameter.comment is None else f" '{parameter.comment}'"
    default = "" if parameter.default is None else f" DEFAULT {parameter.default}"
    return f"{parameter.name} {parameter.type}{default}{comment}"

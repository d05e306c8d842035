"""Writes functions as SQL: statements, calls and descriptions."""

from __future__ import annotations

from itertools import pairwise

from dbt.adapters.silt.engine.catalog.documents import Function, PythonHandler
from dbt.adapters.silt.engine.commands.spark.python_function import PythonCode
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.sql.ast import Parameter
from dbt.adapters.silt.engine.sql.query.quotes import for_any_session
from dbt.adapters.silt.engine.sql.query.references import rewrite
from dbt.adapters.silt.engine.sql.query.scanned_text import ScannedText, scanned


def temporary_function(function: Function, body: str, label: str) -> str:
    """Returns the statement that creates a function of the session.

    Args:
        body: SQL of the function's body, with all names resolved. If it qualifies parameters by the function's name,
            the label replaces that name.
        label: identifier of the session function.
    """
    name = function.name
    own = body
    text = scanned(body)
    if _qualifies_parameters(function, text):
        own = rewrite(text, {}, {(name.database, name.schema, name.identifier): label})
    return f"CREATE OR REPLACE TEMPORARY FUNCTION {quote(label)}{signature(function)} RETURN {own}"


def python_code(function: Function, handler: PythonHandler) -> PythonCode:
    """Returns the code of a function in Python."""
    is_deterministic = function.deterministic is not False
    return PythonCode(str(function.name), function.body, handler.name, str(function.returns), is_deterministic)


def python_call(function: Function, identifier: str) -> str:
    """Returns the SQL body of a function that calls a session function with all the parameters in order."""
    return f"{quote(identifier)}({', '.join(quote(each.name) for each in function.parameters)})"


def signature(function: Function) -> str:
    """Returns parameters, type and determinism, as in the CREATE FUNCTION statement."""
    parameters = ", ".join(_parameter(each) for each in function.parameters)
    returns = "" if function.returns is None else f" RETURNS {function.returns}"
    certainty = {None: "", True: " DETERMINISTIC", False: " NOT DETERMINISTIC"}[function.deterministic]
    return f"({parameters}){returns}{certainty}"


def description(function: Function, extended: bool) -> list[str]:
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


_TITLE_WIDTH = 15


def _qualifies_parameters(function: Function, body: ScannedText) -> bool:
    """Returns whether the body may qualify a parameter by the function's name; otherwise such a name is a column."""
    names = {parameter.name.lower() for parameter in function.parameters}
    pairs = (pair for chain in body.scan.chains for pair in pairwise(chain.parts))
    return any(first == function.name.identifier and second in names for first, second in pairs)


def _lines(title: str, text: str) -> list[str]:
    first, *others = text.split("\n")
    return [f"{title + ':':{_TITLE_WIDTH}}{first}", *(f"{'':{_TITLE_WIDTH}}{other}" for other in others)]


def _parameter_line(parameter: Parameter) -> str:
    comment = "" if parameter.comment is None else f" '{parameter.comment}'"
    default = "" if parameter.default is None else f" DEFAULT {parameter.default}"
    return f"{parameter.name} {parameter.type}{default}{comment}"


def _parameter(parameter: Parameter) -> str:
    default = "" if parameter.default is None else f" DEFAULT {for_any_session(parameter.default)}"
    return f"{quote(parameter.name)} {parameter.type}{default}"

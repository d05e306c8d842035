"""Writes functions as SQL: statements, calls and descriptions."""

from __future__ import annotations

from dbt.adapters.silt.engine.catalog.names.documents import Function, PythonHandler
from dbt.adapters.silt.engine.commands.spark.python_function import PythonCode
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.engine.sql.ast import Parameter
from dbt.adapters.silt.engine.sql.query.quotes import for_any_session


def python_code(function: Function, handler: PythonHandler) -> PythonCode:
    """Returns the code of a function in Python."""
    is_deterministic = function.deterministic is not False
    return PythonCode(str(function.name), function.body, handler.name, str(function.returns), is_deterministic)


def signature(function: Function) -> str:
    """Returns parameters, type and determinism, as in the CREATE FUNCTION statement."""
    parameters = ", ".join(_parameter(each) for each in function.parameters)
    returns = "" if function.returns is None else f" RETURNS {function.returns}"
    certainty = {None: "", True: " DETERMINISTIC", False: " NOT DETERMINISTIC"}[function.deterministic]
    return f"({parameters}){returns}{certainty}"


def _parameter(parameter: Parameter) -> str:
    default = "" if parameter.default is None else f" DEFAULT {for_any_session(parameter.default)}"
    return f"{quote(parameter.name)} {parameter.type}{default}"

"""Checks functions in Python: code of a warehouse that Spark's Python workers run."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError


@dataclass(frozen=True)
class PythonCode:
    """The code of a function.

    Attributes:
        function: the function's full name, for messages.
        source: the code of a Python module.
        handler: the module's function to call; its arguments are positional, and null is None.
        returns: the SQL type of the result.
    """

    function: str
    source: str
    handler: str
    returns: str
    is_deterministic: bool = True


def check(code: PythonCode) -> None:
    """Checks that the code can be parsed and has the handler, without running it.

    Raises:
        InvalidStatementError: if the code is not Python, or lacks the function.
    """
    try:
        tree = ast.parse(code.source)
    except SyntaxError as error:
        raise InvalidStatementError(
            f"its code is not valid Python: {error.msg} (line {error.lineno})",
            table=code.function,
            remedy="Correct the code",
        ) from error
    if not any(isinstance(node, ast.FunctionDef) and node.name == code.handler for node in tree.body):
        raise InvalidStatementError(
            f"its code has no function `{code.handler}`", table=code.function, remedy="Name the function to call"
        )


def register(spark: SparkSession, code: PythonCode, identifier: str) -> None:
    """Registers the code as a function of the session."""
    called = udf(_caller(code.source, code.handler, code.function), code.returns)
    spark.udf.register(identifier, called if code.is_deterministic else called.asNondeterministic())


def _caller(source: str, handler: str, function: str) -> Callable[..., Any]:
    """Returns the function that a worker calls; it runs the code in the worker, once per process, and never here."""
    space: dict[str, Any] = {"__name__": function}

    # Spark sends an inner function to its workers by value, so they do not need this package.
    def call(*arguments: Any) -> Any:
        if handler not in space:
            exec(compile(source, f"<function {function}>", "exec"), space)
        return space[handler](*arguments)

    return call

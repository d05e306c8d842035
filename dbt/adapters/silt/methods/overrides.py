"""Macro API of every materialization: finds the project's overrides, and the query in a node's code."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import AdapterMeta, available
from dbt.adapters.factory import get_adapter_package_names
from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.silt.engine.kernel.errors import StatementSyntaxError
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.materializations.overrides import Macro, Overrides
from dbt.adapters.silt.runs.once import first_time

if TYPE_CHECKING:
    from dbt.adapters.silt.connections import SiltConnectionManager
    from dbt.adapters.silt.engine.sql import ast, tokens
    from dbt.adapters.silt.engine.sql.grammar import parse
else:
    ast = lazy_module("dbt.adapters.silt.engine.sql.ast")
    parse = lazy_module("dbt.adapters.silt.engine.sql.grammar.parse")
    tokens = lazy_module("dbt.adapters.silt.engine.sql.tokens")

PACKAGE = "dbt_silt"
_EXCLUDES_LIMIT = ("OFFSET", "|>")
"""The words after which a query cannot have a LIMIT of its own."""


class OverrideMethods(metaclass=AdapterMeta):
    """The part of the adapter that gives precedence to a project's own materializations, and finds a node's query."""

    config: Any
    connections: SiltConnectionManager
    _macro_resolver: Any

    @available.parse(lambda _, sql: sql)
    def one_query(self, sql: str) -> str:
        """Returns the query in the code of a node, without the semicolon after it, for use inside of a statement.

        Raises:
            CompilationError: if the code has no statement, or several.
        """
        with self.connections.exception_handler(sql):
            statements = tokens.split_statements(sql)
        if not statements:
            raise CompilationError("The query is missing: the code contains only comments. Write a SELECT")
        if len(statements) > 1:
            raise CompilationError(
                f"The code has {len(statements)} statements, separated by semicolons, but must be one query. Put "
                "other statements into the config `pre_hook`, `post_hook` or `sql_header`"
            )
        return statements[0] if ";" in sql else sql

    @available.parse(lambda _, sql, *__: sql)
    def limited(self, sql: str, limit: int | None) -> str:
        """Returns the statement of `dbt show` or of a test's failures with a limit.

        After `offset` or `|>`, a LIMIT would be an error about a word that the user has not written, so such a query
        becomes a subquery. A statement such as SHOW TABLES, which only reads but is not a query, has no limit.
        """
        if limit is None:
            return sql
        try:
            statement = parse.parse(sql)
        except StatementSyntaxError:  # the error of the whole statement has a remedy
            return f"{sql}\nlimit {limit}"
        if not isinstance(statement, ast.Query) and not statement.changes_something:
            return sql
        return f"select * from (\n{sql}\n)\nlimit {limit}" if _excludes_limit(sql) else f"{sql}\nlimit {limit}"

    @contextlib.contextmanager
    def explain_macros(self) -> Iterator[None]:
        """Adds the likely macro, or its package, to an error about a macro that does not exist.

        The lines below an error name the project's macros only: those of dbt and of this package lead to nothing that a
        user could correct.
        """
        try:
            yield
        except DbtRuntimeError as error:
            is_compiled = isinstance(error, CompilationError) and self._macro_resolver is not None
            if is_compiled and (remedy := self._overrides().missing_macro(str(error.msg))) is not None:
                error.msg = f"{error.msg}. {remedy}"
            own = get_adapter_package_names("silt")
            error.stack = [each for each in error.stack if getattr(each, "package_name", None) not in own]
            raise

    def other_materialization(self, name: str) -> Macro | None:
        """Returns the project's materialization that replaces the materialization of that name."""
        return self._overrides().materialization(name)

    def unused_macro_warnings(self, name: str) -> list[str]:
        """Returns a warning, once in a run, for each override of a dbt macro that this adapter does not call."""
        overrides = self._overrides()
        if not first_time(f"the macros of {name}") or overrides.materialization(name) is not None:
            return []
        own = f"macro.{PACKAGE}.materialization_{name}_silt"
        return [
            f"The macro `{macro.name}` of {macro.package_name} is not called: the materialization `{name}` writes with "
            f"its own statements. To change that, declare a materialization `{name}, adapter='silt'`"
            for macro in overrides.unused_macros(name, own)
        ]

    def check_materialization(self, node: Any) -> None:
        """Checks that the materialization of a model exists, before dbt looks for it.

        Raises:
            CompilationError: if it does not exist, but a similar name does; dbt itself reports any other name.
        """
        if getattr(node, "resource_type", None) != "model" or not self.connections.invocation.writes:
            return
        problem = self._overrides().missing_materialization(str(node.config.materialized))
        if problem is not None:
            raise CompilationError(problem)

    def _overrides(self) -> Overrides:
        return Overrides(self._macro_resolver, self.config.project_name, get_adapter_package_names("silt"))


def _excludes_limit(sql: str) -> bool:
    depth = 0
    for token in tokens.tokenize(sql):
        depth += (token.word == "(") - (token.word == ")")
        if depth == 0 and token.word in _EXCLUDES_LIMIT:
            return True
    return False

"""Prepares the SQL of a table's rule for Spark, on behalf of all statements and all definitions."""

from __future__ import annotations

from dbt.adapters.silt.engine.kernel.errors import RuleNotAllowedError
from dbt.adapters.silt.engine.kernel.table.schema import StructField
from dbt.adapters.silt.engine.sql.query.quotes import for_any_session
from dbt.adapters.silt.engine.sql.query.rule_texts import problem


def rule(text: str, what: str, table: str, with_chance: bool = False) -> str:
    """Returns the rule as an expression that means the same to every session.

    Args:
        text: the rule in the table's log.
        what: the name of the rule, for messages.
        with_chance: whether random functions are allowed, so that its value may differ from row to row.

    Raises:
        RuleNotAllowedError: if the rule contains an element that rules of tables may not contain.
        StatementSyntaxError: if the rule cannot be split into tokens.
    """
    runs = for_any_session(text)
    found = problem(text, with_chance) or problem(runs, with_chance)
    if found is not None:
        raise RuleNotAllowedError(f"{what} contains {found}, which is not allowed in a table's rule", table=table)
    return runs


def condition(name: str, text: str, table: str) -> str:
    """Returns the condition of a CHECK constraint as an expression; raises as `rule` does."""
    return rule(text, f"the check constraint `{name}`", table)


def default(member: StructField, table: str) -> str:
    """Returns the default of a column as an expression; raises as `rule` does."""
    return rule(member.default, f"the default of the column `{member.name}`", table, with_chance=True)


def typed_default(member: StructField, table: str) -> str:
    """Returns the default of a column as an expression of the column's type; raises as `rule` does."""
    # The line break ends a comment at the default's end.
    return f"cast(({default(member, table)}\n) as {member.type.sql_name})"


def generation(member: StructField, table: str) -> str:
    """Returns the expression of a generated column; raises as `rule` does."""
    return rule(str(member.generation_expression), f"the generated column `{member.name}`", table)

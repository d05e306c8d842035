"""Prepares the SQL of a table's rules and of a statement's conditions for Spark; a condition must be boolean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, NullType

from dbt.adapters.silt.engine.commands.spark.failures.texts import without_own_names
from dbt.adapters.silt.engine.commands.spark.types import spark_schema
from dbt.adapters.silt.engine.kernel.errors import InvalidStatementError, RuleNotAllowedError, SiltError
from dbt.adapters.silt.engine.kernel.table.schema import StructField, StructType, nullable_schema
from dbt.adapters.silt.engine.sql.query.quotes import for_any_session
from dbt.adapters.silt.engine.sql.query.rule_texts import one_line, problem
from dbt.adapters.silt.engine.sql.tokens import Kind, Token, tokenize

_OPEN: Final = frozenset(("(", "[", "CASE"))
_CLOSE: Final = frozenset((")", "]", "END"))
_OF_CONDITIONS: Final = frozenset(
    ("=", "==", "<=>", "<", ">", "<=", ">=", "<>", "!=", "!<", "!>", "!", "AND", "OR", "NOT", "IN", "IS", "LIKE")
) | frozenset(("ILIKE", "RLIKE", "REGEXP", "BETWEEN", "EXISTS", "TRUE", "FALSE"))
"""Operators and words with a boolean result that bind more loosely than all other operators."""


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


def check_conditions(
    spark: SparkSession,
    schema: StructType,
    conditions: Mapping[str, str],
    table: str,
    unusable: Callable[[str], SiltError] | None = None,
) -> None:
    """Checks that the conditions of CHECK constraints are boolean expressions over a table's columns.

    Args:
        conditions: the conditions by the names of their constraints. Spark analyses them together.
        unusable: returns the error for a constraint whose condition Spark cannot analyse; by default, it has Spark's
            reason.

    Raises:
        InvalidStatementError: if a condition is not boolean.
        RuleNotAllowedError, StatementSyntaxError: as `rule`.
    """
    if not conditions:
        return
    # The line break ends a comment at the condition's end.
    runs = [f"({condition(name, text, table)}\n)" for name, text in conditions.items()]
    whats = [f"the condition of the constraint `{name}`, {one_line(text)}" for name, text in conditions.items()]
    empty = spark.createDataFrame([], spark_schema(nullable_schema(schema)))
    try:
        types = [each.dataType for each in empty.select(*map(F.expr, runs)).schema]
    except AnalysisException as error:
        for name, text in conditions.items():
            if len(conditions) > 1:
                check_conditions(spark, schema, {name: text}, table, unusable)
            elif unusable is not None:
                raise unusable(name) from error
        reason = str(error).partition("\n")[0]
        raise InvalidStatementError(f"{whats[0]}, cannot be used: {reason}", table=table) from error
    for what, found in zip(whats, types, strict=True):
        if not isinstance(found, BooleanType):
            raise InvalidStatementError(f"{what}, is of type {found.simpleString()}, not boolean", table=table)


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


def checked(condition: str, what: str, rows: Callable[[], DataFrame], table: str) -> str:
    """Returns the SQL of a condition that is known to be boolean.

    Args:
        what: the condition as the subject of a sentence, such as "the condition of WHERE".
        rows: returns rows with the names that the condition may use. They are analysed, never run, and only if the SQL
            alone does not prove the type.
        table: the table of the statement.

    Raises:
        InvalidStatementError: if the condition is of another type.
    """
    if is_surely_boolean(condition):
        return condition
    # The line break ends a comment at the condition's end.
    found = rows().select(F.expr(f"({condition}\n)")).schema.fields[0].dataType
    if isinstance(found, NullType):
        return f"cast(({condition}\n) as boolean)"
    if not isinstance(found, BooleanType):
        raise InvalidStatementError(
            f"{what}, {without_own_names(condition.strip())}, is of type {found.simpleString()}, not boolean",
            remedy="Correct the condition: compare the value with another one",
            table=table,
        )
    return condition


def is_surely_boolean(text: str) -> bool:
    """Returns whether an expression, if valid, is of type boolean; False if the text does not determine it."""
    return _is_boolean([token for token in tokenize(text) if token.kind is not Kind.END])


def _is_boolean(tokens: Sequence[Token]) -> bool:
    depths = _depths(tokens)
    outside = (
        token.word
        for at, (token, depth) in enumerate(zip(tokens, depths, strict=True))
        if depth == 0 and not (at and tokens[at - 1].word == ".")
    )
    if any(word in _OF_CONDITIONS for word in outside):
        return True
    is_enclosed = len(tokens) > 2 and tokens[0].word == "(" and all(depths[:-1])
    return is_enclosed and tokens[-1].word == ")" and _is_boolean(tokens[1:-1])


def _depths(tokens: Sequence[Token]) -> list[int]:
    """Returns the nesting depth of each token in brackets and CASEs; openers count as inside, closers as outside."""
    depths: list[int] = []
    opened: list[str] = []
    for token in tokens:
        if token.word in _OPEN:
            opened.append(token.word)
        elif opened and (token.word != "END" or opened[-1] == "CASE") and token.word in _CLOSE:
            opened.pop()  # END without a CASE is a name
        depths.append(len(opened))
    return depths

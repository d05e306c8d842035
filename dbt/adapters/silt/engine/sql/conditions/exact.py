"""Translates a condition that is evaluated row by row into an exactly equivalent predicate.

A part that cannot be translated is an error that names the part. A comparison of a column with a literal of its type
can be translated; expressions, functions, subqueries and comparisons of two columns are left to Spark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from dbt.adapters.silt.engine.kernel.errors import ColumnNotFoundError, UnsupportedStatementError
from dbt.adapters.silt.engine.kernel.table.expressions import And, Constant, Expression, Not, Or
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.sql.ast import Name
from dbt.adapters.silt.engine.sql.conditions import conditions
from dbt.adapters.silt.engine.sql.conditions.literals import Strings, exact_string
from dbt.adapters.silt.engine.sql.conditions.predicates import Translator, column_path, qualified_by
from dbt.adapters.silt.engine.sql.spans import Tokens
from dbt.adapters.silt.engine.sql.tokens import tokenize


def exact_predicate(
    condition: str,
    schema: StructType,
    qualifiers: Collection[Name],
    time_zone: str,
    strings: Strings = exact_string,
) -> Expression:
    """Returns the predicate that has the condition's outcome for every row.

    Args:
        condition: SQL of an expression over a table.
        qualifiers: names whose last parts may qualify columns.
        time_zone: time zone of literals without a time zone.
        strings: the meaning of strings; by default only strings with one meaning in every session are translated.

    Raises:
        UnsupportedStatementError: if a part of it, which the message names, can only be evaluated by Spark.
        ColumnNotFoundError: if it names a column that does not exist.
        StatementSyntaxError: as raised by `tokenize`.
    """
    tokens = tokenize(condition)
    translator = Translator(tokens, schema, qualified_by(schema, qualifiers), time_zone, strings)
    try:
        return _Exact(condition, tokens, translator).read(conditions.structure(tokens))
    except RecursionError:
        raise _refused(condition) from None


@dataclass(frozen=True)
class _Exact:
    text: str
    tokens: Tokens
    translator: Translator

    def read(self, condition: conditions.Condition) -> Expression:
        match condition:
            case conditions.AllOf(parts):
                return And(tuple(map(self.read, parts)))
            case conditions.AnyOf(parts):
                return Or(tuple(map(self.read, parts)))
            case conditions.Negated(part):
                return Not(self.read(part))
        operands = list(_operands(condition))
        for operand in operands:
            self._check_column(operand)
        found = self.translator.translate(condition)
        if _is_uncertain(found):
            raise _refused(self._shown(operands))
        return found

    def _check_column(self, operand: conditions.Operand) -> None:
        path = column_path(self.tokens, operand)
        if path is not None and self.translator.resolve(path) is None:
            names = ", ".join(self.translator.schema.names)
            raise ColumnNotFoundError(f"the column `{'.'.join(path)}` does not exist; columns: {names}")

    def _shown(self, operands: list[conditions.Operand]) -> str:
        """Returns the text of the part, or the whole text if the part is unknown."""
        first = min((each.first for each in operands), default=0)
        after = max((each.after for each in operands), default=0)
        return self.text[self.tokens[first].start : self.tokens[after - 1].end] if after > first else self.text.strip()


def _operands(condition: conditions.Condition) -> Iterator[conditions.Operand]:
    match condition:
        case conditions.Compared(_, left, right):
            yield from (left, right)
        case conditions.Among(value, choices):
            yield from (value, *choices)
        case conditions.Liked(value, pattern):
            yield from (value, pattern)
        case conditions.NullTest(value) | conditions.Bare(value):
            yield value
        case conditions.Opaque(first, after):
            yield conditions.Operand(first, after)


def _is_uncertain(expression: Expression) -> bool:
    match expression:
        case Constant(possible):
            return len(possible) > 1
        case And(parts) | Or(parts):
            return any(map(_is_uncertain, parts))
        case Not(part):
            return _is_uncertain(part)
    return False


def _refused(part: str) -> UnsupportedStatementError:
    return UnsupportedStatementError(
        f"`{part}` can only be evaluated by Spark: here a column is compared with a literal of its type, by =, <=>, "
        "<>, <, <=, >, >=, BETWEEN, IN, IS NULL and LIKE 'prefix%'",
        remedy="Read the rows with Spark (`Warehouse.sql`), or filter the Arrow table",
    )

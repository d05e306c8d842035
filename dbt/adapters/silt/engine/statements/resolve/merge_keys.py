"""Derives from the ON of a MERGE which rows of the target can match: equalities with the source, and the rest."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from dbt.adapters.silt.engine.commands.merge.plan import KeyEquality
from dbt.adapters.silt.engine.kernel.table.expressions import Column, Expression
from dbt.adapters.silt.engine.kernel.table.schema import StructType
from dbt.adapters.silt.engine.sql.ast import Name
from dbt.adapters.silt.engine.sql.conditions import predicates
from dbt.adapters.silt.engine.sql.conditions.conditions import AllOf, Compared, Condition, Operand, structure
from dbt.adapters.silt.engine.sql.spans import Tokens
from dbt.adapters.silt.engine.sql.tokens import Kind, tokenize


@dataclass(frozen=True)
class MergeSides:
    """The two relations whose columns the texts of a MERGE can name.

    Attributes:
        target: the target's columns.
        target_names, source_names: names whose last parts may qualify the columns.
        source_columns: names of the source's columns; None if unknown: then an unqualified column belongs to neither
            side.
    """

    target: StructType
    target_names: Collection[Name]
    source_names: Collection[Name]
    source_columns: Collection[str] | None = None


@dataclass(frozen=True)
class MergeKeys:
    """The conditions that every matching pair fulfils.

    Attributes:
        keys: the equalities of ON.
        target: the predicate that ON implies for the target's row alone.
        keys_only: whether ON consists of the keys only.
    """

    keys: tuple[KeyEquality, ...]
    target: Expression
    keys_only: bool


def merge_keys(condition: str, sides: MergeSides, time_zone: str) -> MergeKeys:
    """Returns the parts of ON, combined by AND, that narrow down the target's rows."""
    tokens = tokenize(condition)
    reader = _Reader(condition, tokens, sides)
    found = structure(tokens)
    parts = tuple(_conjuncts(found))
    keys = tuple(key for part in parts for key in reader.equalities(part))
    demanded = predicates.predicate(tokens, sides.target, _target_resolver(sides), time_zone)
    return MergeKeys(keys, predicates.conjunction([demanded]), keys_only=len(keys) == len(parts))


def _conjuncts(condition: Condition) -> Iterator[Condition]:
    if isinstance(condition, AllOf):
        for part in condition.parts:
            yield from _conjuncts(part)
    else:
        yield condition


def _target_resolver(sides: MergeSides) -> predicates.Resolve:
    """Returns a resolver of the target's columns: names with its qualifier, or names that the source lacks."""

    def resolve(parts: Name) -> Name | None:
        for length in range(len(parts) - 1, 0, -1):
            if predicates.is_suffix(parts[:length], sides.source_names):
                return None
            if (
                predicates.is_suffix(parts[:length], sides.target_names)
                and predicates.field_at(sides.target, parts[length:]) is not None
            ):
                return parts[length:]
        if sides.source_columns is None or parts[0].lower() in {name.lower() for name in sides.source_columns}:
            return None
        return parts if predicates.field_at(sides.target, parts) is not None else None

    return resolve


@dataclass(frozen=True)
class _Reader:
    text: str
    tokens: Tokens
    sides: MergeSides

    def equalities(self, condition: Condition) -> Iterator[KeyEquality]:
        """Yields the condition as a key, if it is a key."""
        if not isinstance(condition, Compared) or condition.operator not in ("=", "<=>"):
            return
        resolve = _target_resolver(self.sides)
        for mine, other in ((condition.left, condition.right), (condition.right, condition.left)):
            parts = predicates.column_path(self.tokens, mine)
            path = None if parts is None else resolve(parts)
            if path is not None and self._is_of_source(other):
                start, end = self.tokens[other.first].start, self.tokens[other.after - 1].end
                yield KeyEquality(Column(path), self.text[start:end], condition.operator == "<=>", start)
                return

    def _is_of_source(self, operand: Operand) -> bool:
        """Returns whether it names a column of the source and no column of the target, and is deterministic."""
        index, columns = operand.first, 0
        while index < operand.after:
            token = self.tokens[index]
            if not token.is_identifier:
                index += 1
                continue
            end = index + 1
            while end + 1 < operand.after and self.tokens[end].word == "." and self.tokens[end + 1].is_identifier:
                end += 2
            following = self.tokens[end].word
            if following == "(":
                if token.word not in _STEADY_FUNCTIONS or end != index + 1:
                    return False
            elif self._is_source_column(tuple(t.identifier for t in self.tokens[index:end:2])):
                columns += 1
            elif not self._is_type(index) and not self._is_typed_literal(index):
                return False
            index = end
        return columns > 0

    def _is_source_column(self, parts: Name) -> bool:
        if any(predicates.is_suffix(parts[:length], self.sides.source_names) for length in range(1, len(parts))):
            return True
        columns = {name.lower() for name in self.sides.source_columns or ()}
        return parts[0].lower() in columns and self.sides.target.field(parts[0]) is None

    def _is_type(self, index: int) -> bool:
        """Returns whether the word is the type of a cast, or the AS before it."""
        return self.tokens[index].word == "AS" or self.tokens[index - 1].word in ("AS", "::")

    def _is_typed_literal(self, index: int) -> bool:
        return self.tokens[index].word in ("DATE", "TIMESTAMP") and self.tokens[index + 1].kind is Kind.STRING


# Functions whose value depends only on their arguments and the session.
_STEADY_FUNCTIONS = frozenset(
    "CAST TRY_CAST COALESCE NVL IFNULL CONCAT CONCAT_WS LOWER UPPER LCASE UCASE TRIM LTRIM RTRIM SUBSTRING SUBSTR "
    "LEFT RIGHT LPAD RPAD REPLACE MD5 SHA SHA1 SHA2 HASH XXHASH64 ABS FLOOR CEIL ROUND GREATEST LEAST "
    "DATE TO_DATE TO_TIMESTAMP TIMESTAMP DATE_TRUNC TRUNC YEAR MONTH DAY HOUR DATE_ADD DATE_SUB ADD_MONTHS "
    "STRING INT BIGINT DECIMAL DOUBLE FLOAT".split()
)

"""Gives the relations of a scanned SELECT, how they are joined, and its conditions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from dbt.adapters.silt.engine.sql.query.parts import Part
from dbt.adapters.silt.engine.sql.query.scans import Block, Reference
from dbt.adapters.silt.engine.sql.spans import Tokens
from dbt.adapters.silt.engine.sql.tokens import Kind, Token


class Join(Enum):
    """How a relation of a FROM list is joined with those before it; a comma is an inner join."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI_OR_ANTI = "semi or anti"


@dataclass(frozen=True)
class Item:
    """One relation of a FROM list.

    Attributes:
        reference: the table or view; None for a subquery, a function, a common table expression ...
        join: how it is joined with those before it.
        group: the number of the comma-separated part of the list that it is in.
        on: the tokens of its join's ON, closed by one of kind END.
        is_plain: whether it is the table or view as it is: not sampled, its columns under their own names, and nothing
            behind its alias that has no place there.
    """

    reference: Reference | None
    join: Join
    group: int
    on: Tokens | None = None
    is_plain: bool = True


@dataclass(frozen=True)
class Select:
    """What follows the FROM of a SELECT.

    Attributes:
        where: the tokens of the condition, closed by one of kind END.
        clauses: the words that begin the other clauses and WHERE.
        list_after: the index of the token FROM.
    """

    items: tuple[Item, ...]
    where: Tokens | None
    clauses: frozenset[str]
    list_after: int

    @property
    def has_lateral_view(self) -> bool:
        return "LATERAL" in self.clauses


def read_select(tokens: Tokens, block: Block) -> Select | None:
    """The frame of a SELECT.

    Args:
        tokens: those of the text that the block is of.

    Returns:
        None where it has no FROM, or a join behind a clause, and where WHERE is not what its rows go through first
        (pipes, pivots).
    """
    keywords = [part.keyword for part in block.parts]
    if keywords.count("FROM") != 1 or not _NOT_PLAIN.isdisjoint(keywords):
        return None
    start = keywords.index("FROM")
    items: list[Item] = []
    clauses: dict[str, Tokens] = {}
    for part, after in block.spans[start:]:
        if part.is_clause:
            clauses.setdefault(part.keyword, _cut(tokens, part.first, after))
        elif clauses:
            return None  # a join behind a clause is Spark's to complain about
        elif part.has_relation:
            items.append(_item(tokens[part.first : after], part, items, block))
        elif part.keyword == "ON":
            items[-1] = replace(items[-1], on=_cut(tokens, part.first, after))
    return Select(tuple(items), clauses.get("WHERE"), frozenset(clauses), block.parts[start].at)


_NOT_PLAIN = frozenset(("|>", "PIVOT", "UNPIVOT"))


def _item(relation: Tokens, part: Part, before: list[Item], block: Block) -> Item:
    group = 0 if not before else before[-1].group + (part.keyword == ",")
    first = next((token.start for token in relation if token.word != "LATERAL"), None)
    reference = next((each for each in block.scope.references if each.start == first), None)
    if reference is None:
        return Item(None, _join(part), group)
    behind = [token for token in relation if token.start >= reference.end]
    of_alias = 0 if reference.alias is None else 1 + (behind[0].word == "AS")
    is_plain = reference.alias_at == reference.end and len(behind) == of_alias
    return Item(reference, _join(part), group, is_plain=is_plain)


def _join(part: Part) -> Join:
    words = part.keyword.split()
    if "SEMI" in words or "ANTI" in words:
        return Join.SEMI_OR_ANTI
    return Join[next((word for word in words if word in ("LEFT", "RIGHT", "FULL")), "INNER")]


def _cut(tokens: Tokens, first: int, after: int) -> Tokens:
    """The tokens from `first` up to, not including, `after`, closed by one of kind END."""
    behind = tokens[after - 1].end if first < after else 0
    return (*tokens[first:after], Token(Kind.END, "", "", behind, behind))

"""Parses the relations of a scanned SELECT, their joins, and its conditions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from dbt.adapters.silt.engine.sql.query.parts import Part
from dbt.adapters.silt.engine.sql.query.scans import Block, Reference
from dbt.adapters.silt.engine.sql.spans import Tokens
from dbt.adapters.silt.engine.sql.tokens import Kind, Token


class Join(Enum):
    """The kind of join of a FROM list's relation with the relations before it; a comma is an inner join."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI_OR_ANTI = "semi or anti"


@dataclass(frozen=True)
class Item:
    """A relation of a FROM list.

    Attributes:
        reference: the table or view; None for any other item, such as a subquery or a function.
        join: its join with the relations before it.
        group: number of the comma-separated part of the list that contains it.
        on: tokens of its join's ON, ending with an END token.
        is_plain: whether it is an unmodified table or view: not sampled, its columns under their own names, and no
            unexpected tokens after its alias.
    """

    reference: Reference | None
    join: Join
    group: int
    on: Tokens | None = None
    is_plain: bool = True


@dataclass(frozen=True)
class Select:
    """The part of a SELECT that begins with FROM.

    Attributes:
        where: tokens of the condition, ending with an END token.
        clauses: words that begin WHERE and the other clauses.
        list_after: index of the token FROM.
    """

    items: tuple[Item, ...]
    where: Tokens | None
    clauses: frozenset[str]
    list_after: int

    @property
    def has_lateral_view(self) -> bool:
        return "LATERAL" in self.clauses


def read_select(tokens: Tokens, block: Block) -> Select | None:
    """Returns the frame of a SELECT.

    Args:
        tokens: tokens of the text that contains the block.

    Returns:
        None without a FROM, with a join after another clause, or if WHERE is not applied first (pipes, pivots).
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
            return None  # Spark reports a join after a clause
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
    """Returns the tokens from `first` up to, not including, `after`, followed by an END token."""
    behind = tokens[after - 1].end if first < after else 0
    return (*tokens[first:after], Token(Kind.END, "", "", behind, behind))

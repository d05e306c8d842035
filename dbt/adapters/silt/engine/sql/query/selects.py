"""Reads the frame of one SELECT: the relations of its FROM list, how they are joined, and its conditions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dbt.adapters.silt.engine.sql.query.scans import Block, Reference
from dbt.adapters.silt.engine.sql.spans import Tokens, after_group
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
        is_plain: whether it is the table or view as it is: not sampled, its columns under their own names.
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
    has_lateral_view: bool
    clauses: frozenset[str]
    list_after: int


def read_select(tokens: Tokens, block: Block) -> Select | None:
    """The frame of a SELECT.

    Args:
        tokens: those of the text that the block is of.

    Returns:
        None where it has no FROM, and where WHERE is not what its rows go through first (pipes, pivots).
    """
    reader = _Reader(tokens, block)
    if any(word in _NOT_PLAIN for word in reader.words):
        return None
    start = reader.find_from()
    return None if start is None else reader.read(start)


_NOT_PLAIN = frozenset(("|>", "PIVOT", "UNPIVOT"))
_CLAUSES = frozenset("SELECT WHERE HAVING LIMIT OFFSET WINDOW QUALIFY MAP REDUCE".split())
_CLAUSES_WITH_BY = frozenset("GROUP ORDER SORT CLUSTER DISTRIBUTE".split())
_JOIN_WORDS = frozenset("NATURAL INNER CROSS LEFT RIGHT FULL OUTER SEMI ANTI JOIN".split())


class _Reader:
    """Reads the tokens of a block that are outside of parentheses; a place is an index into these.

    A group in parentheses is one place. The word of a place is empty where it cannot be a keyword.
    """

    def __init__(self, tokens: Tokens, block: Block) -> None:
        self.tokens = tokens
        self.block = block
        self.places = _outside_parentheses(self.tokens, block)
        self.words = [self._word(index) for index in self.places]
        self.references = {reference.start: reference for reference in block.scope.references}

    def _word(self, index: int) -> str:
        before = self.tokens[index - 1].word if index > self.block.first else ""
        return "" if before in (".", "AS") else self.tokens[index].word

    def find_from(self) -> int | None:
        """The place of FROM, IS [NOT] DISTINCT FROM apart."""
        for place, word in enumerate(self.words):
            is_distinct = self.words[max(0, place - 1)] == "DISTINCT" and self._at(place - 2) in ("IS", "NOT")
            if word == "FROM" and not is_distinct:
                return place
        return None

    def read(self, start: int) -> Select:
        stop = self._next_clause(start + 1)
        where = None
        clauses: set[str] = set()
        clause = stop
        while clause < len(self.words):
            following = self._next_clause(clause + 1)
            clauses.add(self.words[clause])
            if self.words[clause] == "WHERE" and where is None:
                where = self._cut(clause + 1, following)
            clause = following
        items = self._items(start + 1, stop)
        return Select(items, where, "LATERAL" in clauses, frozenset(clauses), self.places[start])

    def _at(self, place: int) -> str:
        return self.words[place] if 0 <= place < len(self.words) else ""

    def _next_clause(self, place: int) -> int:
        """The first place from here on at which a clause begins."""
        while place < len(self.words):
            word, following = self.words[place], self._at(place + 1)
            if word in _CLAUSES or (word in _CLAUSES_WITH_BY and following == "BY"):
                break
            if word == "LATERAL" and following == "VIEW":
                break
            place += 1
        return place

    def _items(self, place: int, stop: int) -> tuple[Item, ...]:
        items: list[Item] = []
        join, group = Join.INNER, 0
        while place < stop:
            first = place
            place = self._end_of_part(place, stop, ("ON", "USING"))
            on = None
            if self._at(place) == "ON" and place < stop:
                end = self._end_of_part(place + 1, stop, ())
                on, after = self._cut(place + 1, end), end
            else:
                after = self._end_of_part(place, stop, ())
            items.append(self._item(first, place, join, group, on))
            if after >= stop:
                break
            if self.words[after] == ",":
                join, group, place = Join.INNER, group + 1, after + 1
            else:
                join, place = self._join(after)
        return tuple(items)

    def _end_of_part(self, place: int, stop: int, words: tuple[str, ...]) -> int:
        """The first place from here on that begins the next relation, or that is one of the words."""
        while place < stop and self.words[place] not in words and self.words[place] != "," and not self._is_join(place):
            place += 1
        return place

    def _is_join(self, place: int) -> bool:
        """Whether words such as LEFT OUTER begin here and lead to JOIN; LEFT(a, 2) is a function."""
        while self._at(place) in _JOIN_WORDS:
            if self.words[place] == "JOIN":
                return True
            place += 1
        return False

    def _join(self, place: int) -> tuple[Join, int]:
        """The kind of the join whose words begin here, and the place behind JOIN."""
        end = self.words.index("JOIN", place)
        words = self.words[place:end]
        if "SEMI" in words or "ANTI" in words:
            return Join.SEMI_OR_ANTI, end + 1
        kind = next((word for word in words if word in ("LEFT", "RIGHT", "FULL")), "INNER")
        return Join[kind], end + 1

    def _item(self, first: int, end: int, join: Join, group: int, on: Tokens | None) -> Item:
        while first < end and self.words[first] == "LATERAL":
            first += 1
        reference = self.references.get(self.tokens[self.places[first]].start) if first < end else None
        if reference is None:
            return Item(None, join, group, on)
        alias_at = reference.alias_at
        renames = any(
            self.words[place] == "(" and alias_at is not None and self.tokens[self.places[place]].start >= alias_at
            for place in range(first, end)
        )
        return Item(reference, join, group, on, is_plain=alias_at == reference.end and not renames)

    def _cut(self, first: int, end: int) -> Tokens:
        """The tokens of the places from `first` up to, not including, `end`, closed by one of kind END."""
        after = self.places[end] if end < len(self.places) else self.block.after
        found = self.tokens[self.places[first] : after] if first < end else ()
        behind = found[-1].end if found else 0
        return (*found, Token(Kind.END, "", "", behind, behind))


def _outside_parentheses(tokens: Tokens, block: Block) -> list[int]:
    places: list[int] = []
    index = block.first
    while index < block.after:
        places.append(index)
        index = after_group(tokens, index) if tokens[index].word == "(" else index + 1
    return places

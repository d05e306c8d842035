"""Parses the text of a plan that Spark has resolved, as EXPLAIN EXTENDED shows it.

The text is the only form of a plan that Spark returns in every session, over Spark Connect too. It shows strings and
names without quotes. A string or name could look like an attribute or an operator, so `with_readable_strings` replaces
such strings before Spark resolves the query, and all names must be readable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from dbt.adapters.silt.engine.sql.spans import Tokens
from dbt.adapters.silt.engine.sql.tokens import Kind

_SECTION: Final = "== Analyzed Logical Plan ==\n"
_LINE: Final = re.compile(r"((?:   |:  )*)(?:\+- |:- )(.*)")
_ATTRIBUTE: Final = re.compile(r"(\w+)#(\d+)L?")
_NAMED: Final = re.compile(r"([^#]+)#(\d+)L?")
_ALIAS: Final = " AS "
_UNREADABLE: Final = re.compile(r"[#\[\]()\\\r\n]")
_PAIR: Final = re.compile(r"coalesce\(\w+#(\d+)L?, \w+#(\d+)L?\)")
_OPENING: Final = "(["
_CLOSING: Final = ")]"
_INDENT: Final = 3
_STRINGS: Final = (Kind.STRING, Kind.DOUBLE_QUOTED)


@dataclass(eq=False)
class PlanNode:
    """An operator of a plan.

    Attributes:
        text: the operator and its arguments, as the plan shows them.
        children: its inputs.
        subqueries: the plans of subqueries in the operator's expressions.
    """

    text: str
    children: list[PlanNode] = field(default_factory=list)
    subqueries: list[PlanNode] = field(default_factory=list)

    @property
    def operator(self) -> str:
        return re.split(r"[ (]", self.text, maxsplit=1)[0]

    @property
    def arguments(self) -> str:
        """The text after the operator's name."""
        return self.text[len(self.operator) :].lstrip()

    @property
    def lists(self) -> list[list[str]]:
        """The arguments that are lists in square brackets, each as the texts of its items."""
        found = [each for each in split(self.arguments) if each.startswith("[") and each.endswith("]")]
        return [split(each[1:-1]) for each in found]

    def all(self) -> Iterator[PlanNode]:
        """Yields the operator and all operators below it, and in its subqueries."""
        yield self
        for each in (*self.children, *self.subqueries):
            yield from each.all()


@dataclass(frozen=True)
class Item:
    """An item of a list of expressions that has a name.

    Attributes:
        id: the identifier that Spark gives to the resulting attribute.
        name: the attribute's name.
        source: the identifier of the attribute that the item returns unchanged, if it does.
        pair: the identifiers of two attributes, if the item is the first of their values that is not null.
    """

    id: int
    name: str
    source: int | None
    pair: tuple[int, int] | None = None


def resolved_plan(explained: str) -> PlanNode | None:
    """Returns the resolved plan in the result of EXPLAIN EXTENDED, or None if the text has another form."""
    text = analyzed_text(explained)
    # The first line shows the columns of the result.
    return None if text is None else _tree(text.split("\n")[1:])


def analyzed_text(explained: str) -> str | None:
    """Returns the text of the resolved plan in the result of EXPLAIN EXTENDED, or None if the text has another form."""
    _, found, rest = explained.partition(_SECTION)
    return rest.partition("\n== ")[0] if found else None


def with_readable_strings(sql: str, tokens: Tokens) -> str:
    """Returns the query with a plain string in place of each string that can look like a part of a plan's text.

    Operators and attributes do not depend on the values of strings, except for the few strings that determine a type,
    such as the schema of `from_json`: Spark cannot resolve the query without them. Equal strings are replaced by equal
    strings, and different strings by different strings.
    """
    prefix = "text_"
    while prefix in sql:
        prefix += "_"
    plain: dict[str, str] = {}
    parts, end = [], 0
    for token in tokens:
        if token.kind in _STRINGS and not is_readable_name(token.text[1:-1]):
            mark = token.text[-1]
            parts += [sql[end : token.start], plain.setdefault(token.text, f"{mark}{prefix}{len(plain)}{mark}")]
            end = token.end
    return "".join([*parts, sql[end:]])


def unreadable_name(tokens: Tokens) -> str | None:
    """Finds a quoted name that can look like a part of a plan's text."""
    names = (token.identifier for token in tokens if token.kind is Kind.QUOTED)
    return next((name for name in names if not is_readable_name(name)), None)


def is_readable_name(name: str) -> bool:
    """Returns whether a name cannot look like a part of a plan's text."""
    return _UNREADABLE.search(name) is None


def split(text: str, separator: str = ", ") -> list[str]:
    """Returns the parts of a text between the separators that are outside of brackets."""
    parts, depth, start, at = [], 0, 0, 0
    while at < len(text):
        depth += (text[at] in _OPENING) - (text[at] in _CLOSING)
        if depth == 0 and text.startswith(separator, at):
            parts.append(text[start:at])
            start = at = at + len(separator)
            continue
        at += 1
    return [*parts, text[start:]]


def attribute(text: str) -> int | None:
    """Returns the identifier of an attribute, or None if the text is another expression."""
    found = _ATTRIBUTE.fullmatch(text)
    return None if found is None else int(found[2])


def item(text: str) -> Item | None:
    """Returns the item that a text describes, or None if it has no name."""
    plain = _ATTRIBUTE.fullmatch(text)
    if plain is not None:
        return Item(int(plain[2]), plain[1], int(plain[2]))
    expression, alias, named = text.rpartition(_ALIAS)
    found = _NAMED.fullmatch(named)
    if found is None:
        return None
    if not alias:
        # A name with other characters than letters, digits and underscores could hide an operator.
        return Item(int(found[2]), found[1], None)
    pair = _PAIR.fullmatch(expression)
    both = None if pair is None else (int(pair[1]), int(pair[2]))
    return Item(int(found[2]), found[1], attribute(expression), both)


def equalities(condition: str) -> list[tuple[int, int]]:
    """Returns the pairs of attributes that are equal in each row for which a condition is true."""
    if not _is_group(condition):
        return []
    inside = condition[1:-1]
    conjuncts = split(inside, " AND ")
    if len(conjuncts) > 1:
        return [pair for each in conjuncts for pair in equalities(each)]
    for operator in (" = ", " <=> "):
        sides = [attribute(each) for each in split(inside, operator)]
        if len(sides) == 2 and sides[0] is not None and sides[1] is not None:
            return [(sides[0], sides[1])]
    return []


def _is_group(text: str) -> bool:
    """Returns whether the parenthesis that opens a text is closed by its last character."""
    if not (text.startswith("(") and text.endswith(")")):
        return False
    depth = 0
    for at, character in enumerate(text):
        depth += (character in _OPENING) - (character in _CLOSING)
        if depth == 0:
            return at == len(text) - 1
    return False


def _tree(lines: list[str]) -> PlanNode | None:
    root: PlanNode | None = None
    path: list[PlanNode | None] = []
    for line in lines:
        found = _LINE.fullmatch(line)
        if root is None and found is None and line:
            root = PlanNode(line)
            path = [root]
        elif found is not None and root is not None:
            depth = len(found[1]) // _INDENT + 1
            if not _add(path, depth, PlanNode(found[2])):
                return None
        elif line.strip():
            return None
    return root


def _add(path: list[PlanNode | None], depth: int, node: PlanNode) -> bool:
    """Adds a node below the last node of the next lower depth; a subquery is two levels below its operator."""
    parent = path[depth - 1] if depth <= len(path) else None
    if parent is not None:
        parent.children.append(node)
    else:
        operator = path[depth - 2] if depth - 2 < len(path) and depth >= 2 else None
        if operator is None:
            return False
        operator.subqueries.append(node)
    del path[depth - 1 if parent is None else depth :]
    if parent is None:
        path.append(None)
    path.append(node)
    return True

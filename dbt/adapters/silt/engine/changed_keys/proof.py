"""Proves that the rows of a query with a key depend only on the rows of its inputs with that key (decision 0089).

An input is *keyed* if the query needs only its rows with a key to return the rows with that key. Any other input is
*constant*: the query needs all of its rows, so a change of it may change the rows of every key. A query without a proof
is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from dbt.adapters.silt.engine.changed_keys.plan_text import Item, PlanNode, attribute, equalities, item, split

INPUT: Final = "__silt_input_"
"""The alias of an input begins with it, and ends with the input's number."""

Need: TypeAlias = int | tuple[int, int]
"""An attribute that holds a column of the key, or two attributes of which the first non-null value is the key's."""

Roles: TypeAlias = Mapping[int, frozenset[tuple[str, ...] | None]]
"""The number of an input -> the columns that hold the key in each of its reads; None for a read that is constant.

A common table expression reads an input once, and a view that the query names several times has the same text for each
of them. Each read then gets the rows of all roles: rows with other keys only add rows of the result that have other
keys.
"""

Rule: TypeAlias = "Callable[[Proof, PlanNode, Sequence[Need]], Roles]"
"""Returns the roles of the inputs for an operator in whose rows these attributes hold the key."""

_ALIAS: Final = re.compile(INPUT + r"(\d+)")
_CTE_DEFINITION: Final = re.compile(r"CTERelationDef (\d+),.*")
_PLAIN_NAME: Final = re.compile(r"\w+")
_CTE_REFERENCE: Final = re.compile(r"CTERelationRef (\d+), true, \[(.*?)\].*")
_SAME_ROWS: Final = (
    *("SubqueryAlias", "PipeOperator", "Sort", "Distinct", "ResolvedHint"),
    *("Repartition", "RepartitionByExpression", "RebalancePartitions"),
)
_OF_CONSTANTS: Final = (
    *_SAME_ROWS,
    *("Filter", "Project", "Aggregate", "Window", "Join", "Union", "Generate", "Expand", "Except", "Intersect"),
    *("WithCTE", "CTERelationDef", "CTERelationRef", "OneRowRelation", "LocalRelation"),
)
_FIRST_SIDE: Final = ("LeftOuter", "LeftSemi", "LeftAnti")
_BOTH_SIDES: Final = ("Inner", "Cross")
_NAMES: Final = {
    "GlobalLimit": "LIMIT",
    "LocalLimit": "LIMIT",
    "Offset": "OFFSET",
    "Tail": "LIMIT",
    "Sample": "TABLESAMPLE",
    "LateralJoin": "LATERAL",
    "UnionLoop": "a recursive common table expression",
    "Except": "EXCEPT",
    "Intersect": "INTERSECT",
}
_TWO: Final = 2


class NotProved(Exception):
    """The query was not proved to depend on single keys; the text says why, and continues "the query ..."."""


@dataclass(frozen=True)
class Proof:
    """Proves the inputs of a plan."""

    _definitions: dict[str, PlanNode] = field(default_factory=dict, init=False, repr=False)

    def keyed(self, node: PlanNode, needs: Sequence[Need]) -> Roles:
        """Returns the roles of the inputs for a plan in which these attributes hold the key.

        Raises:
            NotProved: if this cannot be proved.
        """
        rule = _RULES.get(node.operator)
        if rule is None:
            raise NotProved(f"uses {_NAMES.get(node.operator, f'the operator {node.operator}')}")
        return _merged(rule(self, node, needs), *map(self.constant, node.subqueries))

    def constant(self, node: PlanNode) -> Roles:
        """Returns the roles of the inputs if all rows of a plan are needed.

        Raises:
            NotProved: if its rows may depend on chance.
        """
        if node.operator not in _OF_CONSTANTS:
            raise NotProved(f"uses {_NAMES.get(node.operator, f'the operator {node.operator}')}")
        number = input_number(node)
        if number is not None:
            return {number: frozenset((None,))}
        found = [self.constant(each) for each in (*self._used(node), *node.subqueries)]
        return _merged(*found)

    def output(self, node: PlanNode) -> list[int]:
        """Returns the identifiers of the attributes of a plan's rows.

        Raises:
            NotProved: if they are not known.
        """
        if node.operator in ("Project", "Aggregate", "Expand"):
            return [each.id for each in _items(node.lists[-1])]
        if node.operator == "CTERelationRef":
            return [each.id for each in _items(split(_reference(node)[1]))]
        if node.operator == "Join":
            sides = node.children[:1] if _join(node)[0] in ("LeftSemi", "LeftAnti") else node.children
            return [each for side in sides for each in self.output(side)]
        own = node.lists[0] if node.operator == "Window" else node.lists[-1] if node.operator == "Generate" else []
        if not node.children:
            raise NotProved(f"uses the operator {node.operator}")
        inner = node.children[-1 if node.operator == "WithCTE" else 0]
        return [*self.output(inner), *(each.id for each in _items(own))]

    def define(self, node: PlanNode) -> None:
        """Notes the definitions of common table expressions."""
        for each in node.children[:-1]:
            found = _CTE_DEFINITION.fullmatch(each.text)
            if found is None:
                raise NotProved("uses a common table expression of an unknown form")
            self._definitions[found[1]] = each.children[0]

    def definition(self, node: PlanNode) -> PlanNode:
        """Returns the plan of the common table expression to which an operator refers."""
        number, _ = _reference(node)
        if number not in self._definitions:
            raise NotProved("uses a common table expression of an unknown form")
        return self._definitions[number]

    def _used(self, node: PlanNode) -> list[PlanNode]:
        """Returns the inputs of an operator that affect its rows."""
        if node.operator == "WithCTE":
            self.define(node)
            return node.children[-1:]
        return [self.definition(node)] if node.operator == "CTERelationRef" else node.children


def roles(plan: PlanNode, key: Sequence[int], num_columns: int) -> Roles:
    """Returns the roles of the inputs of a plan.

    Args:
        key: the positions of the key's columns in the plan's rows.
        num_columns: the number of columns of the rows.

    Raises:
        NotProved: if the query was not proved.
    """
    proof = Proof()
    for node in plan.all():
        if node.operator == "WithCTE":
            proof.define(node)
    output = proof.output(plan)
    if len(output) != num_columns:
        raise NotProved("has a result of an unknown form")
    found = proof.keyed(plan, [output[at] for at in key])
    if all(place is None for places in found.values() for place in places):
        raise NotProved("has a UNION that computes the key in each part, or casts it to another type")
    return found


def input_number(node: PlanNode) -> int | None:
    """Returns the number of the input that an operator names, if it does."""
    found = _ALIAS.fullmatch(node.arguments) if node.operator == "SubqueryAlias" else None
    return None if found is None else int(found[1])


def _merged(*found: Roles) -> Roles:
    merged: dict[int, frozenset[tuple[str, ...] | None]] = {}
    for each in found:
        for number, places in each.items():
            merged[number] = merged.get(number, frozenset()) | places
    return merged


def _same_rows(proof: Proof, node: PlanNode, needs: Sequence[Need]) -> Roles:
    if input_number(node) is not None:
        raise NotProved("reads an input in an unknown form")
    return proof.keyed(node.children[0], needs)


def _filter(proof: Proof, node: PlanNode, needs: Sequence[Need]) -> Roles:
    inner = node.children[0]
    if inner.operator == "Join" and _join(inner)[0] in _BOTH_SIDES:
        # `from a, b where a.key = b.key` is a join whose condition is in the filter.
        return _merged(_joined(proof, inner, needs, node.arguments), *map(proof.constant, inner.subqueries))
    return proof.keyed(inner, needs)


def _project(proof: Proof, node: PlanNode, needs: Sequence[Need]) -> Roles:
    items, inner = {each.id: each for each in _items(node.lists[-1])}, node.children[0]
    chosen = [_item(items, need) for need in needs]
    number = input_number(inner)
    if number is not None:
        return {number: frozenset((tuple(each.name for each in chosen),))}
    return proof.keyed(inner, [_source(each) for each in chosen])


def _aggregate(proof: Proof, node: PlanNode, needs: Sequence[Need]) -> Roles:
    if len(node.lists) != _TWO:
        raise NotProved("aggregates over all keys")
    items, groups = {each.id: each for each in _items(node.lists[1])}, set(map(attribute, node.lists[0]))
    sources = [_source(_item(items, need)) for need in needs]
    if not set(sources) <= groups:
        raise NotProved("does not group by the key")
    return proof.keyed(node.children[0], sources)


def _window(proof: Proof, node: PlanNode, needs: Sequence[Need]) -> Roles:
    partitions = set(map(attribute, node.lists[1])) if len(node.lists) > 1 else set()
    if not set(needs) <= partitions:
        raise NotProved("has a window that is not partitioned by the key")
    return proof.keyed(node.children[0], needs)


def _union(proof: Proof, node: PlanNode, needs: Sequence[Need]) -> Roles:
    outputs = [proof.output(each) for each in node.children]
    at = [_position(outputs[0], need) for need in needs]
    return _merged(
        *(
            _either(proof, each, [output[index] for index in at])
            for each, output in zip(node.children, outputs, strict=True)
        )
    )


def _either(proof: Proof, node: PlanNode, needs: Sequence[Need]) -> Roles:
    """Returns the roles of the inputs of a part of a union, all of which are constant if it has no key."""
    try:
        return proof.keyed(node, needs)
    except NotProved:
        return proof.constant(node)


def _generate(proof: Proof, node: PlanNode, needs: Sequence[Need]) -> Roles:
    output = proof.output(node.children[0])
    if not set(needs) <= set(output):
        raise NotProved("computes the key")
    return proof.keyed(node.children[0], needs)


def _expand(proof: Proof, node: PlanNode, needs: Sequence[Need]) -> Roles:
    """Returns the roles for UNPIVOT and GROUPING SETS, which return each row several times with other columns."""
    output, rows = proof.output(node), [split(each[1:-1]) for each in node.lists[0]]
    if any(len(each) != len(output) for each in rows):
        raise NotProved("has an UNPIVOT or a grouping of an unknown form")
    columns = [[attribute(each[_position(output, need)]) for each in rows] for need in needs]
    sources = [column[0] for column in columns if column[0] is not None and len(set(column)) == 1]
    if len(sources) < len(needs):
        raise NotProved("leaves the key out of a grouping of ROLLUP, CUBE or GROUPING SETS, or computes it by UNPIVOT")
    return proof.keyed(node.children[0], sources)


def _cte_reference(proof: Proof, node: PlanNode, needs: Sequence[Need]) -> Roles:
    output, definition = proof.output(node), proof.definition(node)
    inner = proof.output(definition)
    if len(inner) != len(output):
        raise NotProved("uses a common table expression of an unknown form")
    return proof.keyed(definition, [inner[_position(output, need)] for need in needs])


def _with_cte(proof: Proof, node: PlanNode, needs: Sequence[Need]) -> Roles:
    return proof.keyed(node.children[-1], needs)


def _joined(proof: Proof, node: PlanNode, needs: Sequence[Need], also: str = "") -> Roles:
    """Returns the roles of the inputs of a join; `also` is the condition of a filter on its rows."""
    kind, condition = _join(node)
    first, second = node.children
    sides = [set(proof.output(first)), set(proof.output(second))]
    pairs = [*equalities(condition), *equalities(also)]
    if kind == "FullOuter":
        both = [_of_pair(need, pairs, sides) for need in needs]
        return _merged(proof.keyed(first, [a for a, _ in both]), proof.keyed(second, [b for _, b in both]))
    if kind == "RightOuter":
        first, second, sides = second, first, sides[::-1]
    elif kind not in (*_FIRST_SIDE, *_BOTH_SIDES):
        raise NotProved(f"uses the join {kind}")
    options = [_of_side(needs, pairs, side, kind in _BOTH_SIDES) for side in sides]
    if kind not in _BOTH_SIDES:
        options = [_own(needs, sides[0]), _of_side(needs, pairs, sides[1], True)]
    return _cheapest(proof, (first, second), options, kind in _BOTH_SIDES)


def _cheapest(
    proof: Proof, nodes: tuple[PlanNode, PlanNode], options: list[list[Need] | None], may_swap: bool
) -> Roles:
    """Returns the first provable roles: with no constant side, or with one side constant, or the other."""
    reasons: list[NotProved] = []
    attempts = [(options[0], options[1]), (options[0], None), *([(None, options[1])] if may_swap else [])]
    for attempt in attempts:
        if attempt == (None, None) or (attempt is attempts[0] and None in attempt):
            continue
        try:
            return _merged(
                *(
                    proof.constant(node) if needs is None else proof.keyed(node, needs)
                    for node, needs in zip(nodes, attempt, strict=True)
                )
            )
        except NotProved as error:
            reasons.append(error)
    raise reasons[-1] if reasons else NotProved("joins rows of different keys")


def _of_side(
    needs: Sequence[Need], pairs: Sequence[tuple[int, int]], side: set[int], by_equality: bool
) -> list[Need] | None:
    """Returns the attributes of a side of a join that hold the key, or None if it lacks a column of the key."""
    found = [_in_side(need, pairs if by_equality else (), side) for need in needs]
    return None if None in found else [each for each in found if each is not None]


def _own(needs: Sequence[Need], side: set[int]) -> list[Need] | None:
    return _of_side(needs, (), side, by_equality=False)


def _in_side(need: Need, pairs: Sequence[tuple[int, int]], side: set[int]) -> int | None:
    if not isinstance(need, int):
        return None
    equal = [need, *(b for a, b in pairs if a == need), *(a for a, b in pairs if b == need)]
    return next((each for each in equal if each in side), None)


def _of_pair(need: Need, pairs: Sequence[tuple[int, int]], sides: list[set[int]]) -> tuple[int, int]:
    """Returns the attributes of the two sides of a full join that hold a column of the key."""
    for a, b in pairs:
        if not isinstance(need, int) and set(need) == {a, b}:
            ordered = (a, b) if a in sides[0] else (b, a)
            if ordered[0] in sides[0] and ordered[1] in sides[1]:
                return ordered
    raise NotProved("has a full join whose key is not the key of both sides")


def _join(node: PlanNode) -> tuple[str, str]:
    """Returns the kind of a join and its condition, which may be empty."""
    kind, _, condition = node.arguments.partition(", ")
    return kind, condition


def _reference(node: PlanNode) -> tuple[str, str]:
    found = _CTE_REFERENCE.fullmatch(node.text)
    if found is None:
        raise NotProved("uses a common table expression of an unknown form")
    return found[1], found[2]


def _items(texts: Sequence[str]) -> list[Item]:
    found = [item(each) for each in texts]
    if None in found:
        raise NotProved(f"has a column of an unknown form, {texts[found.index(None)]}")
    return [each for each in found if each is not None]


def _item(items: Mapping[int, Item], need: Need) -> Item:
    if not isinstance(need, int) or need not in items:
        raise NotProved("computes the key")
    return items[need]


def _source(found: Item) -> Need:
    source = found.source if found.source is not None else found.pair
    if source is None and not _PLAIN_NAME.fullmatch(found.name):
        raise NotProved(
            f"has the column `{found.name}` of the key, whose name has other characters than letters, digits and "
            "underscores in an input"
        )
    if source is None:
        raise NotProved(f"computes the column `{found.name}` of the key")
    return source


def _position(output: Sequence[int], need: Need) -> int:
    if need not in output:
        raise NotProved("computes the key")
    return list(output).index(need)  # type: ignore[arg-type]


_RULES: Final[Mapping[str, Rule]] = {
    **dict.fromkeys(_SAME_ROWS, _same_rows),
    "Filter": _filter,
    "Project": _project,
    "Aggregate": _aggregate,
    "Window": _window,
    "Union": _union,
    "Generate": _generate,
    "Expand": _expand,
    "Join": _joined,
    "WithCTE": _with_cte,
    "CTERelationRef": _cte_reference,
}

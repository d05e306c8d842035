"""Makes the mutants of a module: each changes one expression or statement inside a function.

The kinds of mutants:

    negate   a condition is negated
    drop     a branch, a handler's recovery or an operand of `and` and `or` is removed
    shift    a comparison includes or excludes its limit, or a number or version is one higher
    swap     the first two positional arguments of a call change places
    field    a keyword of `replace(...)` is removed
    skip     a call, `raise`, `yield` or context manager is left out

The texts of errors, annotations, docstrings and code outside of functions are not changed.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

Function = ast.FunctionDef | ast.AsyncFunctionDef

_SHIFTED: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}

_UNLIKE: Final = frozenset({"isinstance", "next", "getattr", "cast", "max", "min"})
"""Functions whose arguments cannot be confused, or may be in any order."""


@dataclass(frozen=True)
class Mutant:
    """A change of a function.

    Attributes:
        name: the function's qualified name, the kind, the text before and after; unique in the module.
        function: the name and first line, decorators included, of the outermost function that contains the change.
        line: the line of the change.
        block: the first line of the innermost block of statements that contains the change.
        node: the number of the changed node in the order of `ast.walk`.
        change: makes the changed node from a copy of the node.
    """

    name: str
    function: tuple[str, int]
    line: int
    block: int
    node: int
    change: Callable[[Any], ast.AST]


@dataclass(frozen=True)
class _Place:
    """Where a node is: the names around it, the outermost function and the first line of the block."""

    names: tuple[str, ...] = ()
    function: tuple[str, int] | None = None
    block: int = 0
    in_error: bool = False


def mutants_of(source: str) -> list[Mutant]:
    """Returns the mutants of a module, in the order of its lines."""
    tree = ast.parse(source)
    numbers = {id(node): number for number, node in enumerate(ast.walk(tree))}
    found: list[Mutant] = []
    seen: Counter[str] = Counter()
    for node, place in _placed(tree, _Place()):
        for kind, change in _changes(node, place):
            name = f"{'.'.join(place.names)}: {kind} `{_text(node)}` -> `{_text(change(copy.deepcopy(node)))}`"
            seen[name] += 1
            unique = name if seen[name] == 1 else f"{name} ({seen[name]})"
            assert place.function is not None
            found.append(Mutant(unique, place.function, node.lineno, place.block, numbers[id(node)], change))
    return sorted(found, key=lambda mutant: mutant.line)


def mutated(source: str, mutant: Mutant) -> ast.Module:
    """Returns the module with the mutant's change; other lines keep their numbers."""
    tree = ast.parse(source)
    target = list(ast.walk(tree))[mutant.node]
    new = ast.copy_location(mutant.change(copy.deepcopy(target)), target)
    return ast.fix_missing_locations(_Replacement(target, new).visit(tree))  # type: ignore[return-value]


class _Replacement(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self._new if node is self._old else self.generic_visit(node)


def _placed(node: ast.AST, place: _Place) -> Iterator[tuple[Any, _Place]]:
    """Yields the nodes inside functions, without annotations, defaults, decorators and docstrings."""
    if place.function is not None:
        yield node, place
    for field, value in ast.iter_fields(node):
        children = value if isinstance(value, list) else [value]
        if field in ("annotation", "returns", "decorator_list", "args") and not isinstance(node, ast.Call):
            continue
        inner = _inner(node, field, children, place)
        for child in children:
            if isinstance(child, ast.AST) and not _is_docstring(child):
                yield from _placed(child, inner)


def _inner(node: ast.AST, field: str, children: list[Any], place: _Place) -> _Place:
    if isinstance(node, Function | ast.ClassDef):
        place = replace(place, names=(*place.names, node.name))
    if isinstance(node, Function) and place.function is None:
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        place = replace(place, function=(node.name, first))
    if isinstance(node, ast.Raise) or _is_error(node):
        place = replace(place, in_error=True)
    if field in ("body", "orelse", "finalbody") and children and isinstance(children[0], ast.stmt):
        place = replace(place, block=children[0].lineno)
    return place


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_error(node: ast.AST) -> bool:
    """Whether the node makes an error, whose text is for people."""
    if not isinstance(node, ast.Call):
        return isinstance(node, ast.JoinedStr)
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name.endswith(("Error", "conflict"))


def _changes(node: Any, place: _Place) -> Iterator[tuple[str, Callable[[Any], ast.AST]]]:
    if place.in_error:
        return
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        yield "negate", _negated
    if isinstance(node, ast.BoolOp):
        for number in range(len(node.values)):
            yield "drop", _without_operand(number)
    yield from _branches(node)
    yield from _shifts(node)
    yield from _calls(node)


def _branches(node: Any) -> Iterator[tuple[str, Callable[[Any], ast.AST]]]:
    if isinstance(node, ast.If):
        yield "drop", _with("body", [ast.Pass()])
        if node.orelse:
            yield "drop", _with("orelse", [])
    if isinstance(node, ast.ExceptHandler) and not isinstance(node.body[-1], ast.Raise):
        yield "drop", _with("body", [ast.Raise()])
    if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        for number, generator in enumerate(node.generators):
            for which in range(len(generator.ifs)):
                yield "drop", _without_filter(number, which)


def _shifts(node: Any) -> Iterator[tuple[str, Callable[[Any], ast.AST]]]:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _SHIFTED:
        yield "shift", _with("ops", [_SHIFTED[type(node.ops[0])](), *node.ops[1:]])
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield "shift", _with("value", node.value + 1)
    if isinstance(node, ast.Call):
        for number, argument in enumerate(node.args):
            if _is_version(argument):
                yield "shift", _shifted_argument("args", number)
        for number, keyword in enumerate(node.keywords):
            if _is_version(keyword.value):
                yield "shift", _shifted_argument("keywords", number)


def _calls(node: Any) -> Iterator[tuple[str, Callable[[Any], ast.AST]]]:
    if isinstance(node, ast.Call):
        if _name(node.func) not in _UNLIKE and _has_two_arguments(node):
            yield "swap", _with("args", [node.args[1], node.args[0], *node.args[2:]])
        if _name(node.func) == "replace":
            for keyword in node.keywords:
                yield "field", _with("keywords", [each for each in node.keywords if each is not keyword])
    if isinstance(node, ast.Raise):
        yield "skip", lambda _: ast.Pass()
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.YieldFrom | ast.Yield):
        yield "skip", lambda _: ast.Pass()
    if isinstance(node, ast.With) and all(item.optional_vars is None for item in node.items):
        yield "skip", lambda old: ast.If(ast.Constant(True), old.body, [])


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _has_two_arguments(call: ast.Call) -> bool:
    """Whether the call has two positional arguments that differ."""
    if len(call.args) < 2 or any(isinstance(each, ast.Starred) for each in call.args[:2]):
        return False
    return ast.dump(call.args[0]) != ast.dump(call.args[1])


def _is_version(node: ast.AST) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and _name(node).rstrip("s").endswith("version")


def _negated(node: Any) -> ast.AST:
    node.test = node.test.operand if _is_not(node.test) else ast.UnaryOp(ast.Not(), node.test)
    return node


def _is_not(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _with(field: str, value: Any) -> Callable[[Any], ast.AST]:
    def change(node: Any) -> ast.AST:
        setattr(node, field, copy.deepcopy(value))
        return node

    return change


def _without_operand(number: int) -> Callable[[Any], ast.AST]:
    def change(node: Any) -> ast.AST:
        del node.values[number]
        return node.values[0] if len(node.values) == 1 else node

    return change


def _without_filter(generator: int, number: int) -> Callable[[Any], ast.AST]:
    def change(node: Any) -> ast.AST:
        del node.generators[generator].ifs[number]
        return node

    return change


def _shifted_argument(field: str, number: int) -> Callable[[Any], ast.AST]:
    def change(node: Any) -> ast.AST:
        if field == "args":
            node.args[number] = ast.BinOp(node.args[number], ast.Add(), ast.Constant(1))
        else:
            node.keywords[number].value = ast.BinOp(node.keywords[number].value, ast.Add(), ast.Constant(1))
        return node

    return change


def _text(node: ast.AST, width: int = 160) -> str:
    """The first line of a node as source; of a statement with a body, its head; of an error, only its class.

    The texts of errors are edited often, and the names of mutants must not change with them.
    """
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        return f"raise {ast.unparse(node.exc.func)}(...)"
    if isinstance(node, ast.If | ast.With) and not (isinstance(node, ast.If) and _is_dropped(node)):
        return ast.unparse(node).splitlines()[0][:width]
    lines = " ".join(line.strip() for line in ast.unparse(ast.fix_missing_locations(node)).splitlines())
    return lines[:width]


def _is_dropped(node: ast.If) -> bool:
    return isinstance(node.body[0], ast.Pass)

"""Finds tests by their names, with the text that they use, by reading the files of the tests."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

ROOT: Final = Path(__file__).parents[2]
_CONFTEST: Final = "conftest.py"

Definition: TypeAlias = "ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign"


@dataclass(frozen=True)
class Module:
    """A file of the tests.

    Attributes:
        definitions: its functions, classes and values by name.
        imported: the file and the name of each name that it imports from the tests.
    """

    path: Path
    lines: tuple[str, ...] = field(repr=False)
    definitions: dict[str, Definition] = field(repr=False)
    imported: dict[str, tuple[Path, str]] = field(repr=False)

    def text(self, node: ast.AST) -> str:
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])  # type: ignore[attr-defined]
        return "\n".join(self.lines[first - 1 : node.end_lineno])  # type: ignore[attr-defined]


@cache
def module(path: Path) -> Module:
    """Reads a file.

    Raises:
        OSError: it does not exist.
    """
    text = path.read_text()
    definitions: dict[str, Definition] = {}
    imported: dict[str, tuple[Path, str]] = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests"):
            imported |= {
                each.asname or each.name: (_file(node.module or "", each.name), each.name) for each in node.names
            }
        for name in _names(node):
            definitions[name] = node  # type: ignore[assignment]
    return Module(path, tuple(text.splitlines()), definitions, imported)


def _file(name: str, imported: str) -> Path:
    """The file of an imported name, which may be a module itself."""
    folder = ROOT / name.replace(".", "/")
    inner = folder / f"{imported}.py"
    return inner if inner.exists() else folder.with_suffix(".py")


def _names(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.Assign):
        yield from (each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id


def tests_of(path: Path) -> list[str]:
    """The names of the tests of a file: `test_x`, `TestX::test_y`, also those that a class inherits."""
    found = []
    some = module(path)
    for name, node in some.definitions.items():
        if isinstance(node, ast.FunctionDef) and name.startswith("test_"):
            found.append(name)
        elif isinstance(node, ast.ClassDef) and name.startswith("Test"):
            methods = (each for _, owner in _bases(some, node) for each in owner.body)
            found += [
                f"{name}::{each.name}"
                for each in methods
                if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")
            ]
    return found


def text_of(name: str) -> str | None:
    """The text of the test `path::test` and of everything of the tests that it uses; None if there is no such test."""
    path, _, inner = name.partition("[")[0].partition("::")
    if not inner or not (ROOT / path).exists():
        return None
    some = module(ROOT / path)
    owner_name, _, test = inner.rpartition("::")
    if not owner_name:
        node = some.definitions.get(test)
        return None if node is None else _gathered(some, node)
    owner = some.definitions.get(owner_name)
    if not isinstance(owner, ast.ClassDef):
        return None
    return _text_of_method(some, owner, test)


def _text_of_method(some: Module, owner: ast.ClassDef, test: str) -> str | None:
    parts, found = [], False
    for where, each in _bases(some, owner):
        heads = [*each.decorator_list]
        parts += [where.text(head) for head in heads]
        for member in each.body:
            is_test = isinstance(member, ast.FunctionDef) and member.name.startswith("test_")
            if is_test and member.name != test:  # type: ignore[attr-defined]
                continue
            found = found or is_test
            parts.append(_gathered(where, member))
    return "\n".join(parts) if found else None


def _bases(some: Module, owner: ast.ClassDef) -> Iterator[tuple[Module, ast.ClassDef]]:
    """The class and its bases in the tests."""
    yield some, owner
    for base in owner.bases:
        found = _found(some, base.id) if isinstance(base, ast.Name) else None
        if found and isinstance(found[1], ast.ClassDef):
            yield from _bases(found[0], found[1])


def _found(some: Module, name: str) -> tuple[Module, Definition] | None:
    if name in some.definitions:
        return some, some.definitions[name]
    if name in some.imported:
        path, original = some.imported[name]
        if path.exists() and original in module(path).definitions:
            return module(path), module(path).definitions[original]
    return None


def _gathered(some: Module, node: ast.AST) -> str:
    """The text of a node and of the definitions that it names, also as fixtures."""
    parts: list[str] = []
    left, known = [(some, node)], set()
    while left:
        where, each = left.pop()
        if (where.path, id(each)) in known:
            continue
        known.add((where.path, id(each)))
        parts.append(where.text(each))
        for inner in ast.walk(each):
            name = inner.id if isinstance(inner, ast.Name) else inner.arg if isinstance(inner, ast.arg) else ""
            found = _found(where, name) if name else None
            if found is not None:
                left.append(found)
    return "\n".join(parts)

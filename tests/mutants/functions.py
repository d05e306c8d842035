"""Replaces the code of functions in the running process, so that no file and no import changes."""

from __future__ import annotations

import ast
import gc
import importlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Final, TypeAlias

from tests.mutants.kinds import Mutant, mutated

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / "dbt" / "adapters" / "silt"
_PROBE: Final = "__reached__"
_BLOCKS: Final = ("body", "orelse", "finalbody")


class NotReplaceableError(Exception):
    """The mutated code does not fit the function, because the change removes the last use of an outer variable."""


Place: TypeAlias = tuple[str, int]
"""The name and the first line of a function."""


@dataclass(frozen=True)
class Module:
    """A module of the package with the functions that were made from its code.

    Attributes:
        path: its path below the package.
        source: its text.
        functions: the functions, each with its own code; a decorated class may have several copies of a function.
    """

    path: str
    source: str
    functions: dict[Place, list[tuple[FunctionType, CodeType]]]

    def apply(self, mutant: Mutant) -> None:
        """Replaces the code of the mutant's function.

        Raises:
            NotReplaceableError: if the code does not fit, or the function does not exist at run time.
        """
        code = self._codes(mutated(self.source, mutant)).get(mutant.function)
        functions = self.functions.get(mutant.function)
        if not functions or code is None or any(own.co_freevars != code.co_freevars for _, own in functions):
            raise NotReplaceableError
        for function, _ in functions:
            function.__code__ = code

    def restore(self) -> None:
        """Gives all functions their own code back."""
        for functions in self.functions.values():
            for function, own in functions:
                function.__code__ = own

    def add_probes(self, number: int, reached: set[int]) -> None:
        """Lets each block of statements add `number` plus its first line to `reached` when it runs."""
        codes = self._codes(ast.fix_missing_locations(_Probes(number).visit(ast.parse(self.source))))
        for place, functions in self.functions.items():
            for function, own in functions:
                function.__globals__[_PROBE] = reached.add
                if place in codes and own.co_freevars == codes[place].co_freevars:
                    function.__code__ = codes[place]

    def _codes(self, tree: ast.Module) -> dict[Place, CodeType]:
        module = compile(tree, str(PACKAGE / self.path), "exec", dont_inherit=True)
        return {_place(code): code for code in _codes_in(module)}


def modules(paths: list[str]) -> dict[str, Module]:
    """Imports the modules at these paths below the package, and finds their functions."""
    for path in paths:
        importlib.import_module(f"dbt.adapters.silt.{path.removesuffix('.py').replace('/', '.')}")
    found: dict[str, dict[Place, list[tuple[FunctionType, CodeType]]]] = {
        str(PACKAGE / path): defaultdict(list) for path in paths
    }
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename in found:
            found[each.__code__.co_filename][_place(each.__code__)].append((each, each.__code__))
    sources = {path: (PACKAGE / path).read_text(encoding="utf-8") for path in paths}
    return {path: Module(path, sources[path], dict(found[str(PACKAGE / path)])) for path in paths}


def _place(code: CodeType) -> Place:
    return code.co_name, code.co_firstlineno


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes_in(constant)


class _Probes(ast.NodeTransformer):
    """Puts a probe before the first statement of each block inside a function."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._depth = 0

    def visit(self, node: ast.AST) -> Any:
        is_function = isinstance(node, ast.FunctionDef)
        self._depth += is_function
        self.generic_visit(node)
        if self._depth and not isinstance(node, ast.ClassDef):
            for field in _BLOCKS:
                block = getattr(node, field, None)
                if isinstance(block, list) and block:
                    probe = ast.Call(ast.Name(_PROBE, ast.Load()), [ast.Constant(self._number + block[0].lineno)], [])
                    block.insert(0, ast.copy_location(ast.Expr(probe), block[0]))
        self._depth -= is_function
        return node

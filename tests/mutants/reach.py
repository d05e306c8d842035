"""The blocks of statements that a test reaches, found with probes in the functions of the running package."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.mutants.functions import Module

_LINES: Final = 100_000
"""More than a module has."""


@dataclass(frozen=True)
class Reach:
    """The blocks that a test reaches, and how long it takes.

    Attributes:
        seconds: of the clock.
        cpu: seconds of the processor.
        blocks: the first lines of the blocks by the module's path.
    """

    seconds: float
    cpu: float
    blocks: dict[str, list[int]]


class Probes:
    """Probes in each block of some modules; they stay until the modules are restored."""

    def __init__(self, modules: dict[str, Module]) -> None:
        self._reached: set[int] = set()
        self._paths = sorted(modules)
        for number, path in enumerate(self._paths):
            modules[path].add_probes(number * _LINES, self._reached)

    def reach_of(self, run: Callable[[], object]) -> Reach:
        """Returns the blocks that a call reaches, in any thread."""
        self._reached.clear()
        began, cpu = time.monotonic(), time.process_time()
        run()
        seconds, cpu = time.monotonic() - began, time.process_time() - cpu
        blocks: dict[str, list[int]] = {}
        for block in sorted(self._reached.copy()):
            blocks.setdefault(self._paths[block // _LINES], []).append(block % _LINES)
        return Reach(seconds, cpu, blocks)

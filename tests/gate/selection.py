"""The fast set of tests, which `python -m tests.gate.fast` has chosen and `make test` runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).with_name("fast.json")


@dataclass(frozen=True)
class FastSet:
    """The chosen tests.

    Attributes:
        seconds: the estimated seconds of a worker on an idle machine, by file.
        minimums: the test that was chosen for each minimum, such as `route Merge`.
        tests: by file, the names below it of classes, functions and cases; a name includes all that is below it.
    """

    seconds: Mapping[str, float]
    minimums: Mapping[str, str]
    tests: Mapping[str, tuple[str, ...]]

    @classmethod
    def read(cls, file: Path = FILE) -> FastSet:
        """Reads the set from its file."""
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        tests = {path: tuple(names) for path, names in found["tests"].items()}
        return cls(found["seconds"], found["minimums"], tests)

    def write(self, file: Path = FILE) -> None:
        """Writes the set to its file."""
        found = {
            "seconds": dict(sorted(self.seconds.items())),
            "minimums": dict(sorted(self.minimums.items())),
            "tests": {path: sorted(names) for path, names in sorted(self.tests.items())},
        }
        file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(f"{path}::{name}" for path, names in self.tests.items() for name in names)

    def name_of(self, nodeid: str) -> str | None:
        """Returns the name in the set that includes a test; None if no name does."""
        return next((name for name in names_above(nodeid) if name in self._names), None)

    def missing(self, nodeids: Iterable[str]) -> list[str]:
        """Returns the names that include none of these tests, which are all tests of some files."""
        files = {nodeid.partition("::")[0] for nodeid in nodeids}
        present = {name for nodeid in nodeids for name in names_above(nodeid)}
        return sorted(name for name in self._names - present if name.partition("::")[0] in files)


def names_above(nodeid: str) -> list[str]:
    """Returns the test, its function without the case, and its class."""
    function = nodeid.partition("[")[0]
    above = function.rpartition("::")[0]
    return [nodeid, function, *([above] if "::" in above else [])]

"""The capabilities of which each pair has a test, or a reason why the two cannot meet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Final

TABLE: Final = Path(__file__).with_name("pairs.txt")
_NO_TEST: Final = "- "

CAPABILITIES: Final = {
    "publish": r"publish|publication",
    "run ids": r"silt_run_id|with_id\(|run_id|Killed|killed",
    "reuse": r"reuse",
    "changed keys": r"changed[_ ]keys",
    "silt_changes": r"silt_changes",
    "differences": r"differences",
    "transactions": r"transaction|begin",
    "branches": r"branch",
    "named branches": r"named|pr_17",
    "rollback": r"rollback|rolled back",
    "hooks": r"hook",
    "overrides": r"generate_alias_name|macro persist_docs|replacing|overrid|macros",
    "python": r"def model\(|\.py\"|python",
    "snapshots": r"snapshot",
    "seeds": r"seed",
    "microbatch": r"batch",
    "unit tests": r"unit_test|fixture|of_",
    "views": r"view|function",
    "files": r"external_location|read_files|file_locations|\.csv",
    "clones": r"clone",
    "collations": r"(?i)collat",
    "enforced keys": r"enforced",
    "foreign keys": r"foreign",
    "audits": r"audit",
    "upkeep": r"upkeep",
    "clustering": r"cluster",
    "empty": r"--empty|--sample",
    "accelerator": r"accelerat",
    "duckdb_file": r"duckdb_file",
    "endpoint": r"endpoint",
    "keep_alive": r"mark\.kept|keep_alive|kept",
    "connect": r"mark\.connect|remote|connect",
    "object stores": r"house|cloud|bucket|object|mark\.connect",
}
"""The name of each capability, and an expression that some text finds in every test of it."""


@dataclass(frozen=True)
class Pair:
    """A line of the table.

    Attributes:
        test: `path::test`; empty if the two cannot meet.
        reason: why they cannot meet.
    """

    names: frozenset[str]
    test: str = ""
    reason: str = ""


def pairs(table: Path = TABLE) -> Iterator[Pair]:
    """Reads the table.

    Raises:
        ValueError: if a line is no pair.
    """
    for line in table.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        names, separator, rest = line.partition(": ")
        first, times, second = names.partition(" x ")
        if not (separator and times and rest):
            raise ValueError(f"not `A x B: ...`: {line}")
        is_test = not rest.startswith(_NO_TEST)
        yield Pair(frozenset((first, second)), *((rest, "") if is_test else ("", rest[len(_NO_TEST) :])))


def wanted() -> set[frozenset[str]]:
    """All pairs of two capabilities."""
    return {frozenset(each) for each in combinations(CAPABILITIES, 2)}


def mentions(text: str, capability: str) -> bool:
    """Whether the text of a test has the words of a capability."""
    return re.search(CAPABILITIES[capability], text) is not None

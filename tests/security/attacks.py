"""Shared by the attacks: a warehouse with another user's tables, its commands without Spark, a time limit, seeds."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

from dbt.adapters.silt.cli.main import main
from tests.unit.cli.house import House, rows

SECONDS = 20
"""More seconds of processor time than any command needs."""
WAITS = 20
"""The factor by which a command may take longer on a busy machine."""

DOORS = (
    ("runs",),
    ("check",),
    ("show", "main.hostile"),
    ("history", "main.hostile"),
    ("show", "main.hostile", "--rows"),
    ("sql", "select count(*) from main.hostile"),
)


@dataclass(frozen=True)
class Said:
    """The output of a command, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def all(self) -> str:
        return self.out + self.err


@contextlib.contextmanager
def limited(seconds: int = SECONDS) -> Iterator[None]:
    """Interrupts a block that uses the processor for longer, or hangs, which fails the test: a command ends, whatever
    the files contain.
    """

    def end(signal_number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"it needs more than {seconds} seconds of the processor, or hangs")

    before = {each: signal.signal(each, end) for each in (signal.SIGPROF, signal.SIGALRM)}
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(WAITS * seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        for each, handler in before.items():
            signal.signal(each, handler)


def silt(house: House, *arguments: str) -> Said:
    """Runs a command on the warehouse in this process; exceptions that the command does not handle are raised."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), limited():
        code = main([*arguments, "--warehouse", str(house.folder)])
    return Said(code, out.getvalue(), err.getvalue())


def report(house: House, to: Path) -> Said:
    """Writes the report."""
    return silt(house, "report", "--output", str(to))


def with_two_tables(folder: Path) -> House:
    """Creates a warehouse with the tables `good` and `hostile`, of two versions each."""
    house = House(folder)
    folder.mkdir(exist_ok=True)
    for name in ("main.good", "main.hostile"):
        log = house.create(name, rows(0, 3))
        house.append(log, rows(3, 3))
    house.catalog = House(folder).catalog
    return house


def log_folder(house: House) -> Path:
    """Returns the folder of the hostile table's log."""
    return house.folder / "main" / "hostile" / "_delta_log"


def put_commit(house: House, version: int, *actions: Mapping[str, Any]) -> None:
    """Writes a commit of the hostile table."""
    text = "".join(f"{json.dumps(action)}\n" for action in actions)
    (log_folder(house) / f"{version:020d}.json").write_text(text, encoding="utf-8")


def actions_of(house: House, version: int) -> list[dict[str, Any]]:
    """Returns the actions of a commit of the hostile table."""
    lines = (log_folder(house) / f"{version:020d}.json").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def changed(house: House, version: int, kind: str, **fields: Any) -> None:
    """Changes fields of the actions of one kind in a commit of the hostile table."""
    found = [
        {name: {**body, **fields} if name == kind else body for name, body in action.items()}
        for action in actions_of(house, version)
    ]
    put_commit(house, version, *found)


def nested(depth: int = 100_000) -> str:
    """Returns JSON with so many levels of nesting."""
    return "[" * depth + "]" * depth


Attack: TypeAlias = Callable[[int], int]
"""Tries a seed; returns the number of mutations, and raises AssertionError if they show a problem."""


def problems(attack: Attack, seeds: Iterable[int]) -> Iterator[str]:
    """Yields the problems that seeds show."""
    return (problem for _, problem in _tried(attack, seeds) if problem is not None)


def tell(attack: Attack, seeds: Iterable[int]) -> int:
    """Prints each seed before it is tried, because it may end the process, the problems and the counts.

    Returns:
        1 if there are any problems.
    """
    logging.disable()
    counts: Counter[str] = Counter()
    for mutations, problem in _tried(attack, _shown(seeds)):
        counts["seeds"] += 1
        counts["mutations"] += mutations
        if problem is not None:
            counts["problems"] += 1
            print(f"\n{json.dumps(problem)}", flush=True)
    print(f"\n{dict(counts)}")
    return int(counts["problems"] > 0)


def _shown(seeds: Iterable[int]) -> Iterator[int]:
    for seed in seeds:
        print(f"\r{seed}", end="", flush=True)
        yield seed


def _tried(attack: Attack, seeds: Iterable[int]) -> Iterator[tuple[int, str | None]]:
    for seed in seeds:
        try:
            yield attack(seed), None
        except AssertionError as error:
            yield 0, str(error)

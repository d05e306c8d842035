"""Measures the cost of the checks of paths, rules and pages: `python -m benchmarks.checks [--quick]`.

Both contestants are dbt-silt, which take turns in one process; the baseline omits the checks. The check of a file
includes its location, links, size and modification time, because one call to the system returns all of them. The
processor time of the checks within a statement is measured as well: it does not depend on the machine's other work.
"""

from __future__ import annotations

import abc
import argparse
import contextlib
import functools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

from benchmarks import entrants
from benchmarks.contestants.contestant import Need
from benchmarks.contestants.silt import Silt
from benchmarks.data import Rows
from benchmarks.harness import CaseResult, run_case
from benchmarks.report import statements_table
from dbt.adapters.silt import engine as silt
from dbt.adapters.silt.engine.commands.writing import rules
from dbt.adapters.silt.engine.kernel.files.file_guard import FileGuard
from dbt.adapters.silt.engine.kernel.files.page_bounds import PageBounds
from dbt.adapters.silt.engine.kernel.files.plain_types import BATCH_ROWS
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from dbt.adapters.silt.engine.sql.query import rule_texts
from dbt.adapters.silt.session.spark import stop_spark


class Checked(Silt):
    """Unchanged dbt-silt."""

    name = "with the checks"

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        super().__init__(spark, folder)
        self.seconds_of_checks: list[float] = []
        """The processor time of the checks in each repetition, the warm-ups included."""

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Measures the processor time of the checks, in all threads."""
        took: list[float] = []
        watch = functools.partial(_watch, took)
        with (
            patch.object(FileGuard, "check", watch(FileGuard.check)),
            patch.object(FileGuard, "check_files", watch(FileGuard.check_files)),
            patch.object(PageBounds, "rows_at_once", watch(PageBounds.rows_at_once)),
            patch.object(rules, "problem", watch(rule_texts.problem)),
        ):
            yield
        self.seconds_of_checks.append(sum(took))

    def read(self, table: str) -> pa.Table:
        """Reads the rows of a table without Spark."""
        return silt.read(str(self.folder_of(table)))

    def folder_of(self, table: str) -> Path:
        """Returns the folder of a table."""
        return self._folder / table


class Unchecked(Checked):
    """dbt-silt without the checks of data file paths, pages and rule texts."""

    name = "without the checks"

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        yield

    def execute(self, statement: str) -> None:
        with _without_checks():
            super().execute(statement)

    def query(self, statement: str) -> DataFrame:
        with _without_checks():
            return super().query(statement)

    def read(self, table: str) -> pa.Table:
        with _without_checks():
            return super().read(table)


def _watch(took: list[float], check: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the check with its processor seconds appended to a list at each call."""

    @functools.wraps(check)
    def watched(*arguments: Any, **named: Any) -> Any:
        start = time.thread_time()
        try:
            return check(*arguments, **named)
        finally:
            took.append(time.thread_time() - start)

    return watched


@contextlib.contextmanager
def _without_checks() -> Iterator[None]:
    nothing = {"check": lambda *_: None, "check_files": lambda *_: None}
    with (
        patch.multiple(FileGuard, **nothing),
        patch.object(PageBounds, "rows_at_once", lambda *_: BATCH_ROWS),
        patch.object(rules, "problem", lambda *_: None),
    ):
        yield


@dataclass
class _CheckCase(abc.ABC):
    """A case on a table that all repetitions share."""

    size: int
    table = "t"
    needs = frozenset((Need.ROWS,))
    warmups = 2
    repetitions = 9

    def before(self, contestant: Checked, repetition: int) -> None:
        return

    def work(self, contestant: Checked, repetition: int) -> None:
        with contestant.watched():
            self.statement(contestant, repetition)

    @abc.abstractmethod
    def statement(self, contestant: Checked, repetition: int) -> None:
        """Runs the statement that is timed."""

    def result(self, contestant: Checked, repetition: int) -> DataFrame:
        return contestant.contents(self.table)

    def expected(self) -> None:
        return None

    def finish(self, contestant: Checked, repetition: int) -> None:
        contestant.execute(f"drop table {contestant.reference(self.table)}")


class _OfManyFiles(_CheckCase):
    """A table whose files are links to one file, so that they need no space."""

    def prepare(self, contestant: Checked) -> None:
        contestant.create(self.table, Rows(0, 10))
        _repeat_the_file(contestant, self.table, self.size)


class ReadBySpark(_OfManyFiles):
    """A query that opens each file."""

    @property
    def name(self) -> str:
        return f"read {self.size:,} files, Spark"

    def statement(self, contestant: Checked, repetition: int) -> None:
        contestant.totals(self.table)


class ReadByArrow(_OfManyFiles):
    """The same rows without Spark."""

    @property
    def name(self) -> str:
        return f"read {self.size:,} files, Arrow"

    def statement(self, contestant: Checked, repetition: int) -> None:
        contestant.read(self.table)


class SmallMerge(_OfManyFiles):
    """A merge whose key is in one file."""

    @property
    def name(self) -> str:
        return f"merge into 1 of {self.size:,} files"

    def prepare(self, contestant: Checked) -> None:
        super().prepare(contestant)
        contestant.append(self.table, Rows(1000, 1010))

    def statement(self, contestant: Checked, repetition: int) -> None:
        contestant.merge(self.table, Rows(1000, 1010))


class WriteWithRules(_CheckCase):
    """An insert into a table with constraints, generated columns and defaults, whose texts were checked before."""

    is_first = False

    @property
    def name(self) -> str:
        return f"insert with {self.size:,} rules{', first time' if self.is_first else ''}"

    def prepare(self, contestant: Checked) -> None:
        third = range(self.size // 3)
        generated = "".join(f", g{each} bigint generated always as (id * {each + 2})" for each in third)
        defaults = "".join(f", d{each} string default concat('d', {each})" for each in third)
        checks = "".join(f", constraint c{each} check (id + {each} >= 0)" for each in third)
        contestant.execute(f"create table {contestant.reference(self.table)} (id bigint{generated}{defaults}{checks})")

    def before(self, contestant: Checked, repetition: int) -> None:
        if self.is_first:
            rule_texts.problem.cache_clear()

    def statement(self, contestant: Checked, repetition: int) -> None:
        contestant.execute(f"insert into {contestant.reference(self.table)} (id) values ({repetition})")


class FirstWriteWithRules(WriteWithRules):
    """The same in a process that has not checked these texts."""

    is_first = True


OF_FILES = (ReadByArrow, ReadBySpark, SmallMerge)
OF_RULES = (WriteWithRules, FirstWriteWithRules)
CASES: tuple[type[_CheckCase], ...] = (*OF_FILES, *OF_RULES)


def _repeat_the_file(contestant: Checked, table: str, count: int) -> None:
    """Commits links to the table's only file as separate data files."""
    log = DeltaLog(LocalStore(str(contestant.folder_of(table))), table)
    base = log.snapshot()
    (add,) = base.add_files()
    adds = [replace(add, path=f"part-{number:06}.parquet") for number in range(count - 1)]
    for each in adds:
        os.link(Path(log.store.root, add.path), Path(log.store.root, each.path))
    changes = Changes(Operation("WRITE", {"mode": "Append"}), adds=tuple(adds))
    commit(log, base, changes, ReadSet(), CommitSettings())


def share(result: CaseResult, contestant: Checked) -> tuple[float, float]:
    """Returns the median processor time of the checks in a case, in seconds, and its share of the statement's time."""
    measured = result.measurements[-1]
    seconds = statistics.median(contestant.seconds_of_checks[-len(measured.seconds) :])
    return seconds, seconds / measured.median


def shares_table(shares: dict[str, tuple[float, float]]) -> Table:
    """Returns a line per case: the processor time of the checks in a statement, and its share of the statement."""
    table = Table(title="Checks: processor time in a statement, and share of its time")
    for column in ("case", "milliseconds", "share"):
        table.add_column(column, no_wrap=True)
    for case, (seconds, part) in shares.items():
        table.add_row(case, f"{seconds * 1000:.2f}", f"{part:.2%}")
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the cases and prints each median with its ratio to the baseline's."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.checks", description=__doc__)
    entrants.add_session_options(options)
    given = options.parse_args(arguments)
    files, many = (50, 9) if given.quick else (2_000, 99)
    cases = [*(each(files) for each in OF_FILES), *(each(many) for each in OF_RULES)]
    try:
        spark = entrants.session(given, with_delta_spark=False)
        with tempfile.TemporaryDirectory() as folder:
            contestants = [each(spark, Path(folder, each.name)) for each in (Unchecked, Checked)]
            results, shares = [], {}
            for case in cases:
                results.append(run_case(case, contestants))
                shares[case.name] = share(results[-1], contestants[-1])
            Console().print(statements_table(results), shares_table(shares))
    finally:
        stop_spark()
    return 0


if __name__ == "__main__":
    sys.exit(main())

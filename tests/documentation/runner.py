"""Runs a page: its blocks in order, in a separate project, on the Spark of this process."""

from __future__ import annotations

import contextlib
import doctest
import io
import json
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.silt.cli.project.profile import find_project, warehouse_of
from dbt.adapters.silt.engine import Warehouse
from dbt.adapters.silt.engine.sql.tokens import split_statements
from tests.documentation import commands, output
from tests.documentation.page import Block, Kind, blocks_of
from tests.documentation.workplace import FAST, workplace, write

_NO_OPTIONS = Namespace(
    project_dir=None, profiles_dir=None, profile=None, target=None, target_path=None, warehouse=None
)
_DOCTEST_OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run_page(page: Path, folder: Path, spark: Callable[[], SparkSession]) -> None:
    """Runs the blocks of a page.

    Args:
        folder: an empty folder for the page's project.
        spark: returns the session of the page; called when a block needs it.

    Raises:
        PageError: if a block does not have the result that the page states.
    """
    with workplace(folder) as patch:
        run = _Run(patch, spark)
        for block in blocks_of(page):
            _STEPS[block.kind](run, block)


@contextlib.contextmanager
def session_of_page(spark: SparkSession) -> Iterator[SparkSession]:
    """A new session, which `SparkSession.builder.getOrCreate()` returns on the page."""
    session = spark.newSession()
    for name, value in FAST.items():
        session.conf.set(name, value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SparkSession, "_instantiatedSession", session)
        patch.setattr(SparkSession, "stop", _refuse_to_stop)
        yield session


def _refuse_to_stop(_: SparkSession) -> None:
    raise RuntimeError("a page does not stop Spark: the other pages need it")


@dataclass
class _Run:
    """The state of a page.

    Attributes:
        names: variables shared by its Python blocks.
        rows: the result of the last SQL statement.
    """

    patch: pytest.MonkeyPatch
    spark: Callable[[], SparkSession]
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    rows: DataFrame | None = None

    def warehouse(self) -> Warehouse:
        """Returns the warehouse that the page's Python created, or that of its project."""
        made = self.names.get("warehouse")
        if isinstance(made, Warehouse):
            return made
        project = find_project(_NO_OPTIONS)
        assert project, "a page has a project"
        found = warehouse_of(project, _NO_OPTIONS)
        own, *others = found.locations.items()
        return Warehouse(self.spark(), own[1], database=own[0], schema=found.schema, databases=dict(others))


def _file(_: _Run, block: Block) -> None:
    write(block.title, block.text)


def _console(run: _Run, block: Block) -> None:
    try:
        found = list(commands.commands(block.text))
    except ValueError as error:
        raise block.error(str(error)) from error
    for command in found:
        run.spark()
        done = commands.run(command.text, run.patch)
        fails = block.fails and command is found[-1]
        if (done.code != 0) != fails:
            problem = "was to fail" if fails else f"failed with exit code {done.code}"
            raise block.error(f"`{command.text}` {problem}; it printed\n{done.printed}", command.line)
        if command.shown is not None and not output.matches(command.shown, done.printed):
            raise block.error(f"`{command.text}`: {output.difference(command.shown, done.printed)}", command.line)


def _python(run: _Run, block: Block) -> None:
    run.spark()
    with _failure(block):
        # With as many empty lines before the code as the page has, a traceback names the page's lines.
        exec(compile("\n" * (block.line - 1) + block.text, str(block.page), "exec"), run.names)


def _doctest(run: _Run, block: Block) -> None:
    run.spark()
    parsed = doctest.DocTestParser().get_doctest(block.text, run.names, "block", str(block.page), block.line - 1)
    said = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=_DOCTEST_OPTIONS)
    runner.run(parsed, out=said.write, clear_globs=False)
    run.names.update(parsed.globs)
    if runner.failures:
        raise block.error(said.getvalue())


def _sql(run: _Run, block: Block) -> None:
    with _failure(block):
        warehouse = run.warehouse()
        for statement in split_statements(block.text):
            run.rows = warehouse.sql(statement)
            run.rows.collect()


@contextlib.contextmanager
def _failure(block: Block) -> Iterator[None]:
    """Raises PageError if the code in here fails, or, for a block that must fail, does not fail."""
    try:
        yield
    except Exception as error:
        if not block.fails or block.note not in str(error):
            raise block.error(f"{type(error).__name__}: {error}") from error
        return
    if block.fails:
        raise block.error("the block was to fail")


def _result(run: _Run, block: Block) -> None:
    if run.rows is None:
        raise block.error("there is no SQL block before this result")
    said = shown_rows(run.rows)
    if not output.matches(block.text, said):
        raise block.error(output.difference(block.text, said))


def shown_rows(rows: DataFrame) -> str:
    """Returns the rows as `DataFrame.show` prints them."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        rows.show(100, truncate=False)
    return said.getvalue()


def _yaml(_: _Run, block: Block) -> None:
    with _failure(block):
        list(yaml.safe_load_all(block.text))


def _json(_: _Run, block: Block) -> None:
    with _failure(block):
        json.loads(block.text)


def _nothing(_: _Run, __: Block) -> None:
    """Ignores a block for readers."""


_STEPS: dict[Kind, Callable[[_Run, Block], None]] = {
    Kind.FILE: _file,
    Kind.CONSOLE: _console,
    Kind.PYTHON: _python,
    Kind.DOCTEST: _doctest,
    Kind.SQL: _sql,
    Kind.RESULT: _result,
    Kind.YAML: _yaml,
    Kind.JSON: _json,
    Kind.TEXT: _nothing,
    Kind.NOT_RUN: _nothing,
}

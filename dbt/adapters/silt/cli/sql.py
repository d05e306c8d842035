"""`silt sql`: runs statements on the warehouse, or opens a shell for them."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt.adapters.silt.cli.output.rendering import complain
from dbt.adapters.silt.cli.warehouses import OpenWarehouse, Subparsers, open_warehouse, subcommand
from dbt.adapters.silt.engine.kernel.errors import InvalidArgumentError, InvalidStatementError
from dbt.adapters.silt.lazy import lazy_module

if TYPE_CHECKING:
    from dbt.adapters.silt.cli.project.profile import Target
    from dbt.adapters.silt.cli.shell import commands, output, prompt, spark_process, statements
    from dbt.adapters.silt.cli.shell.output import Result
    from dbt.adapters.silt.cli.shell.statements import ShellContext, Statements
else:
    commands = lazy_module("dbt.adapters.silt.cli.shell.commands")
    output = lazy_module("dbt.adapters.silt.cli.shell.output")
    prompt = lazy_module("dbt.adapters.silt.cli.shell.prompt")
    spark_process = lazy_module("dbt.adapters.silt.cli.shell.spark_process")
    statements = lazy_module("dbt.adapters.silt.cli.shell.statements")

_FAILED, _DAMAGE, _CANCELLED = 2, 1, 130
_STANDARD = "-"
_DESCRIPTION = """\
Runs statements, separated by semicolons, from the command line, a file or the standard input; without statements, on a
terminal, it opens a shell. Queries that the log or Arrow can answer as Spark would run without Spark: counts, min, max,
and rows under conditions that compare columns with literals. For all other statements Spark starts once, as configured
in the profile. `explain select ...` shows which files are read, and why others are skipped; `explain extended` shows
Spark's plans. A terminal shows the first rows; a pipe or a file gets all rows. Times with a zone are shown in UTC, with
a Z."""


def add(subparsers: Subparsers) -> None:
    """Declares the subcommand."""
    parser = subcommand(subparsers, "sql", "run statements, or open a shell for them", _DESCRIPTION)
    parser.add_argument("text", metavar="TEXT", nargs="?", help='statements, as in "select count(*) from main.orders"')
    parser.add_argument("--run", metavar="ID", help="show the warehouse as this run sees it, which is not published")
    parser.add_argument("--branch", metavar="NAME", help="read and write on this branch, instead of the profile's")
    parser.add_argument("-f", "--file", metavar="FILE", help="run the statements of a file")
    parser.add_argument("--csv", metavar="FILE", help="write the rows of one statement as CSV; `-` prints them")
    parser.add_argument("--parquet", metavar="FILE", help="write the rows of one statement as a Parquet file")
    parser.add_argument("--overwrite", action="store_true", help="replace FILE if it exists")


def run(arguments: Namespace) -> int:
    """Runs the statements, or the shell."""
    _check(arguments)
    text = _text(arguments)
    texts = None if text is None else commands.pieces(text)
    _check_one(arguments, texts)
    warehouse = open_warehouse(arguments, on_branch=arguments.branch is None and arguments.run is None)
    if arguments.branch is not None:
        warehouse = warehouse.on_branch(arguments.branch)
    opened = statements.Statements(shell_context(warehouse, arguments.run))
    try:
        if texts is None:
            prompt.Prompt(opened).run()
            return 0
        return _run_all(texts, opened, arguments)
    except output.StatementFailedError as error:
        complain(error)
        return _DAMAGE if error.is_damage else _FAILED
    except output.CancelledError:
        print("silt: cancelled; the statement has committed nothing", file=sys.stderr)
        return _CANCELLED
    finally:
        opened.close()


def _check(arguments: Namespace) -> None:
    """Checks that the options can be combined.

    Raises:
        InvalidArgumentError: if they cannot, or a file cannot be written.
    """
    if arguments.run is not None and arguments.branch is not None:
        raise InvalidArgumentError("both a run and a branch are given", remedy="Give only one of them")
    if arguments.text is not None and arguments.file is not None:
        raise InvalidArgumentError("both statements and a file are given", remedy="Give only one of them")
    if sum((arguments.json, arguments.csv is not None, arguments.parquet is not None)) > 1:
        raise InvalidArgumentError("two output formats are given", remedy="Use only one of --json, --csv and --parquet")
    for file in (arguments.csv, arguments.parquet):
        if file is not None and file != _STANDARD:
            output.check_target(file, arguments.overwrite)


def _text(arguments: Namespace) -> str | None:
    """Returns the statements, or None if the user will type them.

    Raises:
        InvalidArgumentError: if the file cannot be read, or an output format is given without a statement.
    """
    if arguments.text is not None:
        return str(arguments.text)
    try:
        if arguments.file is not None and arguments.file != _STANDARD:
            return Path(arguments.file).read_text(encoding="utf-8")
        if arguments.file == _STANDARD or not sys.stdin.isatty():
            return sys.stdin.read()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"{arguments.file or 'the standard input'} cannot be read: {error}") from error
    if arguments.json or arguments.csv is not None or arguments.parquet is not None:
        raise InvalidArgumentError("the statement whose rows are to be written is missing", remedy="Give a statement")
    return None


def _check_one(arguments: Namespace, texts: list[str] | None) -> None:
    """Checks that the input has a statement, and only a single statement if its rows are written to a file."""
    if texts is not None and not texts:
        raise InvalidArgumentError("the statement is missing", remedy='Give a statement, as in `silt sql "select 1"`')
    if (arguments.csv is not None or arguments.parquet is not None) and texts is not None and len(texts) > 1:
        raise InvalidArgumentError(
            f"a file holds the rows of one statement, but {len(texts)} are given", remedy="Run them one at a time"
        )


def shell_context(opened: OpenWarehouse, run: str | None = None) -> ShellContext:
    """Returns the warehouse and settings of a shell's statements.

    Args:
        run: the id of a run whose branch the statements read.

    Raises:
        RunNotFoundError: if no such run exists.
    """
    target, catalog = opened.target, opened.catalog
    if target is None:
        credentials = {
            "database": opened.database,
            "schema": opened.schema,
            "warehouse": opened.locations[opened.database],
        }
        request: dict[str, Any] = {"project_root": str(Path.cwd()), "profile": None, "credentials": credentials}
    else:
        request = {"project_root": str(target.project_root), "profiles_dir": str(target.profiles_dir)}
        request |= {"profile": target.profile, "target": target.name}
        if opened.target_path is not None:
            request["manifest"] = str(opened.target_path / "manifest.json")
    if run is not None or opened.branch:
        request["named_branch"] = opened.branch
    if run is not None:
        branch = catalog.run_branches(opened.database).find(run).branch
        request["branch"] = branch
        catalog = catalog.on_branch(opened.database, catalog.branch(opened.database, branch))
    request["shows_progress"] = sys.stdout.isatty() and sys.stderr.isatty()
    conf = {} if target is None else target.spark_conf
    has_own_spark = target is None or target.has_own_spark
    return statements.ShellContext(
        catalog,
        opened.database,
        opened.schema,
        conf,
        has_own_spark,
        request,
        _notice(target),
        is_kept=_is_kept(target),
    )


def _notice(target: Target | None) -> str:
    if target is not None and target.is_remote:
        return spark_process.CONNECTS
    return spark_process.STAYS if _is_kept(target) else spark_process.STARTS


def _is_kept(target: Target | None) -> bool:
    return target is not None and target.may_stay and not target.is_remote


def _run_all(texts: list[str], opened: Statements, arguments: Namespace) -> int:
    """Runs the statements in turn, and prints or writes their results."""
    columns = prompt.terminal_columns()
    most = None if columns is None or arguments.json or arguments.csv or arguments.parquet else output.MOST_COUNTED
    found: list[Result] = []
    try:
        for number, text in enumerate(texts):
            result = commands.answer(text, opened.names) if commands.is_command(text) else opened.run(text, most)
            found.append(result)
            if arguments.csv is not None or arguments.parquet is not None:
                _write(result, arguments)
            elif not arguments.json:
                _print(result, columns, most, is_first=number == 0)
    finally:
        if arguments.json and found:
            print(output.json_text(found), flush=True)
    if opened.is_in_transaction:
        raise InvalidStatementError(
            "the statements end within a transaction, which changed nothing", remedy="Add `commit` at the end"
        )
    return 0


def _print(result: Result, columns: int | None, most: int | None, is_first: bool) -> None:
    if not is_first:
        print()
    for line in prompt.lines(result, columns, most or output.MOST_COUNTED):
        print(line)
    sys.stdout.flush()


def _write(result: Result, arguments: Namespace) -> None:
    if not isinstance(result, output.RowsFound):
        raise InvalidArgumentError("the statement was run, but it has no rows to write", remedy="Leave the file out")
    if arguments.csv == _STANDARD:
        output.print_csv(result.rows, sys.stdout)
    elif arguments.csv is not None:
        output.write_csv(result.rows, arguments.csv)
    else:
        output.write_parquet(result.rows, arguments.parquet)

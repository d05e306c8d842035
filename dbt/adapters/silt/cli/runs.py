"""`silt runs`: shows the logical runs that committed to a warehouse, the newest first."""

from __future__ import annotations

import re
import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any

from dbt.adapters.silt.cli.history import counts, rows_json
from dbt.adapters.silt.cli.output.answers import (
    RESULT,
    UNKNOWN,
    UTC,
    Answer,
    Block,
    Rows,
    States,
    count,
    duration,
    heading,
    iso,
    utc,
)
from dbt.adapters.silt.cli.output.rendering import GAP, complain, show
from dbt.adapters.silt.cli.warehouses import Subparsers, open_warehouse, subcommand
from dbt.adapters.silt.engine.kernel.printable import short_id, shortened, width
from dbt.adapters.silt.records.known_runs import KnownRun, known_runs, unpublished_runs
from dbt.adapters.silt.records.project_records import ProjectRecords
from dbt.adapters.silt.records.run_history import Run, TableHistory, histories, runs

_COLUMNS = (
    "run",
    "id",
    RESULT,
    "failed",
    f"day {UTC}",
    "took",
    "#commands",
    "#nodes",
    "#tables",
    "#commits",
    "#inserted",
    "#updated",
    "#deleted",
    "#conflicts",
    "#skipped",
)
_LEFT_OUT_FIRST = (
    "#commands",
    "#conflicts",
    "#skipped",
    "#commits",
    "#nodes",
    "#tables",
    "#deleted",
    "#updated",
    "#inserted",
    "took",
    f"day {UTC}",
)
"""The columns that are left out of a table that is too wide, the least important first."""
_WIDEST = 120
"""The width of the table, in characters."""
_LONGEST_FAILED = 30
_LAST = 30
_PROBLEM = 80
_DAY = len("2026-03-01")
_HOOK = re.compile(r"\boperation (?P<name>[\w.-]+-on-run-(?:start|end)-\d+)")
_DESCRIPTION = """\
Shows the runs that changed tables, from the tables' logs (not those of dropped tables), and the runs that changed
nothing, from the dbt project's target/silt_runs.json. The result, the failures, the last command of the run and the
duration are known from that file only; for a run on another machine they are -. A run is `broken off` if its process
was killed. The result counts nodes and tests; `reused` are nodes whose work is in an earlier commit. With --check the
exit code is 0 if every run shown has succeeded, otherwise 1, even for a run in progress: use `silt runs --last --check`
for monitoring. Conflicts are commits and statements that were tried again because another writer committed first.
Skipped units of work are known from the dbt project's target/silt_commits.jsonl only; if that file does not have the
run, they are -. The table has at most 120 columns of text: the least important facts are left out, and --json has all
of them. Each command takes the id that is shown, the beginning of an id that dbt has made."""


def add(subparsers: Subparsers) -> None:
    """Declares the subcommand."""
    parser = subcommand(subparsers, "runs", "show the runs that changed the warehouse, the newest first", _DESCRIPTION)
    parser.add_argument("-n", "--limit", type=int, metavar="N", help="only the newest N runs")
    parser.add_argument("--last", action="store_const", const=1, dest="limit", help="only the newest run")
    add_check(parser)


def add_check(parser: ArgumentParser) -> None:
    """Declares `--check`."""
    parser.add_argument("--check", action="store_true", help="exit with 1 unless all runs shown have succeeded")


def run(arguments: Namespace) -> int:
    """Prints the runs."""
    warehouse = open_warehouse(arguments)
    found = histories(warehouse.catalog)
    records = ProjectRecords.of(warehouse.target_path)
    target = None if warehouse.target is None else warehouse.target.name
    unpublished = unpublished_runs(warehouse.catalog.run_branches(warehouse.database))
    known = known_runs(runs(found), records, target, unpublished)
    shown = known if arguments.limit is None else known[: max(arguments.limit, 0)]
    code = show(answer(shown, found, records), arguments.json)
    return max(code, report_problems(found), failed_check(shown) if arguments.check else 0)


def failed_check(shown: Sequence[KnownRun]) -> int:
    """Returns the exit code of `--check`."""
    return 0 if shown and all(each.is_good for each in shown) else 1


def report_problems(found: Sequence[TableHistory]) -> int:
    """Prints the tables that could not be read, and returns the exit code for them."""
    problems = [history.problem for history in found if history.problem is not None]
    for problem in problems:
        complain(problem)
    return 1 if problems else 0


def answer(shown: Sequence[KnownRun], found: Sequence[TableHistory], records: ProjectRecords) -> Answer:
    """Renders the runs, in the order given."""
    document = {
        "runs": [_json(each, records) for each in shown],
        "problems": [str(history.problem) for history in found if history.problem is not None],
    }
    rows = [_row(each, records) for each in shown]
    blocks: list[Block] = [_fitting(rows) if rows else "no run has changed a table of this warehouse"]
    cut = next((each for each in shown if _is_shortened(each)), None)
    if cut is not None:
        blocks.append(f"all failures of a run: silt run {shlex.quote(short_id(cut.run_id))}")
    kept_up = next((each for each in shown if each.upkeep), None)
    if kept_up is not None:
        blocks.append(f"upkeep of run {short_id(kept_up.run_id)}: {kept_up.upkeep}")
    if len(shown) > 1:
        last = [each.state for each in reversed(shown[:_LAST])]
        blocks.append(States(f"last {len(last)} runs, the newest last", last))
    return Answer(document, blocks)


def result_text(each: KnownRun) -> str:
    """Formats a run's result, such as `failed: 11 pass, 2 error, 1 skip`."""
    known = ", ".join(f"{number} {name}" for name, number in each.counts.items() if number)
    return (each.state or UNKNOWN) + (f": {known}" if known else "")


def _short(problem: str) -> str:
    """Returns the name of the hook that an error of dbt is about, or else the beginning of the error."""
    hook = _HOOK.search(problem)
    return problem[:_PROBLEM] if hook is None else hook["name"]


def _failed_text(each: KnownRun) -> str:
    """Names the first failure, and counts the rest."""
    names = _failures(each)
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return shortened(names[0], _LONGEST_FAILED - len(more)) + more if names else UNKNOWN


def _failures(each: KnownRun) -> list[str]:
    return list(dict.fromkeys([*each.failed, *map(_short, each.problems)]))


def _is_shortened(each: KnownRun) -> bool:
    return bool(each.problems) or ", ".join(_failures(each)) not in ("", _failed_text(each))


def _row(each: KnownRun, records: ProjectRecords) -> list[str]:
    skipped, made = records.skipped(each.run_id), each.commits or Run(each.run_id, ())
    return [
        each.name,
        short_id(each.run_id),
        result_text(each),
        _failed_text(each),
        utc(each.started_ms)[:_DAY],
        duration(records.seconds(each.run_id)),
        count(len(each.invocations)),
        count(len(made.nodes)),
        count(len(made.tables)),
        count(len(made.commits)),
        *counts(made.counts),
        count(made.commit_retries + made.statement_reruns),
        count(None if skipped is None else len(skipped)),
    ]


def _fitting(rows: Sequence[Sequence[str]]) -> Rows:
    """Returns the rows as a table that is not too wide, if the least important columns suffice for that."""
    widths = {
        name: max(map(width, (heading(name), *cells)))
        for name, cells in zip(_COLUMNS, zip(*rows, strict=True), strict=True)
    }
    for name in _LEFT_OUT_FIRST:
        if sum(widths.values()) + len(GAP) * (len(widths) - 1) <= _WIDEST:
            break
        del widths[name]
    kept = [index for index, name in enumerate(_COLUMNS) if name in widths]
    return Rows(tuple(widths), [[row[index] for index in kept] for row in rows])


def result_json(each: KnownRun) -> dict[str, Any]:
    """Returns a run's result as members of a JSON object."""
    return {
        "result": each.state,
        "counts": dict(each.counts),
        "failed": list(each.failed),
        "problems": list(each.problems),
    }


def _json(each: KnownRun, records: ProjectRecords) -> dict[str, Any]:
    skipped, made = records.skipped(each.run_id), each.commits or Run(each.run_id, ())
    return {
        "run_id": each.run_id,
        **result_json(each),
        "commands": [command.command for command in each.commands],
        "started_at": records.started_at(each.run_id),
        "seconds": records.seconds(each.run_id),
        "first_commit_at": iso(made.first_ms if made.commits else None),
        "last_commit_at": iso(made.last_ms if made.commits else None),
        "invocations": each.invocations,
        "targets": each.targets,
        "clients": each.clients,
        "nodes": made.nodes,
        "tables": made.tables,
        "commits": len(made.commits),
        **rows_json(made.counts),
        "commit_retries": made.commit_retries,
        "statement_reruns": made.statement_reruns,
        "skipped": None if skipped is None else len(skipped),
        "upkeep": each.upkeep,
    }

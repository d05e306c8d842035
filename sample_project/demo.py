"""Builds two months of flights and explains each step; `make demo` runs it.

Re-creates `landing/`, `warehouse/` and `target/` next to this file, and changes nothing else. Ends with an error if a
build fails or differs from the explanation.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import land
from dbt.artifacts.schemas.results import NodeStatus
from dbt.artifacts.schemas.run import RunResult
from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession
from rich import box
from rich.console import Console
from rich.table import Table

from dbt.adapters.silt.engine import Warehouse

PROJECT = Path(__file__).resolve().parent
WRITERS = ("model", "seed", "snapshot")
console = Console()


class DemoError(Exception):
    """A step differs from its explanation."""


def main() -> int:
    """Runs all steps; returns 0 if each step does what its explanation says."""
    started = time.monotonic()
    try:
        start_empty()
        january()
        february()
        february_again()
        history()
    except DemoError as error:
        console.print(f"\n[bold red]The demo failed:[/] {error}")
        return 1
    say(f"\nDone in {time.monotonic() - started:.0f} seconds. The tables are in {PROJECT / 'warehouse'}.")
    return 0


def start_empty() -> None:
    """Removes the files of earlier demos and builds."""
    say("A year of flights arrives month by month. This demo builds two months with dbt on embedded Spark.")
    for folder in ("landing", "warehouse", "target", "logs"):
        shutil.rmtree(PROJECT / folder, ignore_errors=True)


def january() -> None:
    """Runs the first build, which creates every table."""
    chapter("January lands", "The flights, weather and register of planes of one month arrive as Parquet files.")
    land.land(1)
    build("january")
    say("Each line is one commit: Parquet files, and an entry in the table's log in the open Delta format.")


def february() -> None:
    """Runs the second build, which adds new, late and corrected flights."""
    chapter(
        "February lands, with late and corrected flights of January",
        "Some January flights are reported late, and some arrival times of January are corrected.",
    )
    land.land(2)
    flights = build("february")["flights"]
    expect(flights["rows_inserted"] > 0 and flights["rows_updated"] > 0, "the merge inserted and updated flights")
    say(
        f"One commit inserted {flights['rows_inserted']:,} new or late flights and updated "
        f"{flights['rows_updated']:,} corrected flights. daily_summary replaced the changed days, and "
        "route_performance the changed months."
    )


def february_again() -> None:
    """Repeats the second run, which applies nothing twice."""
    chapter(
        "The same run again",
        "An orchestrator repeats a run if it got no response. The run id is the same, and each table records it.",
    )
    outcomes = build("february")
    tables = {name: outcome for name, outcome in outcomes.items() if "table_version" in outcome}
    expect(tables and all(outcome["skipped"] for outcome in tables.values()), "every table was skipped")
    say(f"All {len(tables)} tables were skipped: no row was written. A new run id would start a new run.")


def history() -> None:
    """Shows the log of one table, and values before and after their correction."""
    chapter(
        "The history of flights", "Every version is readable, and target/silt_commits.jsonl says which run wrote it."
    )
    warehouse = Warehouse(SparkSession.builder.getOrCreate(), str(PROJECT / "warehouse"))
    of_flights = [each for each in journal() if each["table"] == "silt.main.flights" and not each["skipped"]]
    runs = {commit["table_version"]: commit for commit in of_flights}
    commits = warehouse.sql("describe history main.flights").collect()
    expect([commit.version for commit in commits] == [1, 0], "flights has two versions")
    table = lines("version", "committed at", "run", "operation", "rows")
    for commit in commits:
        run = runs[commit.version]
        at = f"{commit.timestamp:%H:%M:%S}"
        table.add_row(str(commit.version), at, run["run_id"], commit.operation, rows_text(run))
    console.print(table)
    before_and_after(warehouse)


def before_and_after(warehouse: Warehouse) -> None:
    """Shows three flights in version 0 and in the newest version."""
    corrected = warehouse.sql(
        """
        select carrier, flight_number, new.flight_date, old.arr_delay as before, new.arr_delay as after
        from main.flights as new
        join main.flights version as of 0 as old using (scheduled_hour, carrier, flight_number)
        where new.arr_delay <> old.arr_delay and old.arr_delay > 0
        order by new.flight_date, carrier, flight_number
        limit 3
        """
    ).collect()
    expect(len(corrected) == 3, "version 0 still shows the arrivals as first reported")
    for row in corrected:
        flight = f"{row.carrier} {row.flight_number} on {row.flight_date:%B %d}"
        say(f"{flight}: {row.before} minutes late in version 0, {row.after} in version 1.")


def journal() -> list[dict[str, Any]]:
    """Returns the entries of the adapter's journal, one for each commit."""
    text = (PROJECT / "target" / "silt_commits.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def build(run_id: str) -> Mapping[str, Mapping[str, Any]]:
    """Runs `dbt build` with a run id, and shows the result of each table's commit.

    Returns:
        The adapter's response of each model, seed and snapshot, by name.

    Raises:
        DemoError: a node failed.
    """
    variables = json.dumps({"silt_run_id": run_id})
    console.print(f"\n[bold green]$[/] dbt build --vars '{variables}'")
    arguments = ["--quiet", "build", "--vars", variables, "--project-dir", str(PROJECT), "--profiles-dir", str(PROJECT)]
    started = time.monotonic()
    with console.status("building"):
        outcome = dbtRunner().invoke(arguments)
    if not outcome.success:
        raise DemoError(str(outcome.exception or "dbt build was not successful, see above"))
    results: Sequence[RunResult] = outcome.result.results
    show(results, time.monotonic() - started)
    return {result.node.name: result.adapter_response for result in results if result.node.resource_type in WRITERS}


def show(results: Sequence[RunResult], seconds: float) -> None:
    """Prints a line for each table, and the number of passed tests."""
    table = lines("table", "how", "version", "rows", "seconds")
    for result in results:
        response = result.adapter_response
        if result.node.resource_type in WRITERS and "table_version" in response:
            did = "[yellow]skipped[/]" if response["skipped"] else rows_text(response)
            strategy = result.node.config.get("incremental_strategy") or result.node.config.materialized
            version = str(response["table_version"])
            table.add_row(result.node.name, strategy, version, did, f"{result.execution_time:.1f}")
    console.print(table)
    passed = sum(result.status == NodeStatus.Pass for result in results)
    say(f"{passed} tests passed; {seconds:.0f} seconds in total.")


def lines(*columns: str) -> Table:
    """Returns a table without a frame, in which only the column `rows` may wrap."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=column != "rows", justify="right" if column == "seconds" else "left")
    return table


def rows_text(counts: Mapping[str, Any]) -> str:
    """Returns the row counts that are not zero, in words."""
    names = {"rows_inserted": "inserted", "rows_updated": "updated", "rows_deleted": "deleted"}
    return ", ".join(f"{counts[key]:,} {word}" for key, word in names.items() if counts.get(key)) or "-"


def chapter(title: str, text: str) -> None:
    """Prints the heading of a step."""
    console.rule(f"[bold]{title}")
    say(text)


def say(text: str) -> None:
    """Prints one or two sentences."""
    console.print(text, highlight=False)


def expect(is_so: object, claim: str) -> None:
    """Raises DemoError if a claim of the explanation is false."""
    if not is_so:
        raise DemoError(f"expected that {claim}")


if __name__ == "__main__":
    sys.exit(main())

"""Measures the loop of a developer beside dbt-duckdb: `python -m benchmarks.developer_loop --duckdb PATH/TO/dbt`.

The same project of 18 models and 20 tests is built from nothing, built again without a change, and one of its models is
run, by each contestant in turn; each command is a process. The rows of all final tables must be equal.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

SUBJECTS: Final = ("clicks", "orders", "visits", "returns", "refunds")
_EVENTS: Final = """
{{ config(materialized='table') }}
{% set id = 'range' if target.type == 'duckdb' else 'id' %}
select {{ id }} as event_id, {{ id }} % 1000 as customer_id, {{ id }} % 365 as day,
       cast({{ id }} % 977 as decimal(12, 2)) as amount, {{ id }} % 7 % 5 as subject
from range({{ var('rows') }})
"""
_STAGED: Final = "select event_id, customer_id, day, amount from {{{{ ref('events') }}}} where subject = {number}\n"
_OF_DAYS: Final = """
{{{{ config(materialized='incremental', unique_key='day', incremental_strategy='{strategy}') }}}}
select day, count(*) as events, sum(amount) as amount from {{{{ ref('stg_{subject}') }}}}
{{% if is_incremental() %}}where day >= (select max(day) from {{{{ this }}}}){{% endif %}}
group by day
"""
_OF_CUSTOMERS: Final = """
{{{{ config(materialized='table') }}}}
select customer_id, count(*) as events, sum(amount) as amount from {{{{ ref('stg_{subject}') }}}} group by customer_id
"""
_ALL: Final = """
{{ config(materialized='table') }}
select c.customer_id, c.amount as ordered, v.events as visits
from {{ ref('customers_orders') }} c join {{ ref('customers_visits') }} v on v.customer_id = c.customer_id
"""
_ONE: Final = "customers_orders"
"""The model that a developer changes and runs."""

_TABLES: Final = ("value_of_customers", *(f"{kind}_{each}" for kind in ("days", "customers") for each in SUBJECTS))


@dataclass(frozen=True)
class Contestant:
    """A way to run dbt.

    Attributes:
        command: the beginning of each command line.
        profile: the fields of the target.
    """

    name: str
    command: tuple[str, ...]
    profile: Mapping[str, object]


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a table of seconds; returns 1 if the contestants' rows differ."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.developer_loop", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--duckdb", help="the command dbt of an environment with dbt-duckdb")
    given = parser.parse_args(arguments)
    found: dict[str, dict[str, list[float]]] = {}
    contents = set()
    for _ in range(given.repetitions):
        for each in contestants(given.duckdb):
            with tempfile.TemporaryDirectory() as folder:
                for step, seconds in _measure(each, Path(folder), given.rows):
                    found.setdefault(each.name, {}).setdefault(step, []).append(seconds)
                contents.add(_content(each, Path(folder), given.rows))
    table = Table("", *next(iter(found.values())), title=f"seconds, {given.rows:,} events, {os.cpu_count()} processors")
    for name, steps in found.items():
        table.add_row(name, *(f"{statistics.median(taken):.1f}" for taken in steps.values()))
    Console(width=120).print(table)
    if len(contents) > 1:
        print("the rows differ", file=sys.stderr)
    return int(len(contents) > 1)


def contestants(duckdb: str | None) -> Iterator[Contestant]:
    """Yields the contestants.

    Args:
        duckdb: the command `dbt` of an environment with dbt-duckdb; without it, dbt-duckdb is left out.
    """
    programs = Path(sys.executable).parent
    yield Contestant("dbt-silt, defaults", (str(programs / "dbt"),), {"type": "silt"})
    loop = {"type": "silt", "keep_alive": "1 minute", "reuse": "unchanged"}
    yield Contestant("dbt-silt, `silt dbt`, keep_alive, reuse", (str(programs / "silt"), "dbt"), loop)
    if duckdb:
        yield Contestant("dbt-duckdb", (duckdb,), {"type": "duckdb", "path": "shop.duckdb"})


def _measure(each: Contestant, folder: Path, rows: int) -> Iterator[tuple[str, float]]:
    for name, text in _files(each).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    steps = {
        "first build": ("build",),
        "unchanged build": ("build",),
        "one model": ("run", "--select", _ONE),
        "one model again": ("run", "--select", _ONE),
    }
    for step, command in steps.items():
        if step.startswith("one model"):
            (folder / f"models/{_ONE}.sql").open("a").write(f"-- {step}\n")
        began = time.perf_counter()
        _run(each, folder, rows, *command)
        yield step, time.perf_counter() - began


def _files(each: Contestant) -> dict[str, str]:
    models = {"events": _EVENTS, "value_of_customers": _ALL, "top": "select * from {{ ref('value_of_customers') }}"}
    for number, subject in enumerate(SUBJECTS):
        models[f"stg_{subject}"] = _STAGED.format(number=number)
        strategy = "merge" if each.profile["type"] == "silt" else "delete+insert"
        models[f"days_{subject}"] = _OF_DAYS.format(subject=subject, strategy=strategy)
        models[f"customers_{subject}"] = _OF_CUSTOMERS.format(subject=subject)
    keys = {
        name: "day" if name.startswith("days") else "customer_id" for name in _TABLES if name != "value_of_customers"
    }
    tested = [
        {"name": name, "columns": [{"name": key, "data_tests": ["unique", "not_null"]}]} for name, key in keys.items()
    ]
    target = {**each.profile, "schema": "main", "threads": 4}
    return {
        "dbt_project.yml": "{name: shop, profile: shop, flags: {send_anonymous_usage_stats: false}}",
        "profiles.yml": json.dumps({"shop": {"target": "dev", "outputs": {"dev": target}}}),
        "models/models.yml": json.dumps({"models": tested}),
        **{f"models/{name}.sql": text for name, text in models.items()},
    }


def _run(each: Contestant, folder: Path, rows: int, *command: str) -> str:
    line = [*each.command, "--quiet", *command, "--vars", f"rows: {rows}"]
    run = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"{each.name}: {' '.join(line)} ended with {run.returncode}:\n{run.stdout}{run.stderr}")
    return run.stdout


def _content(each: Contestant, folder: Path, rows: int) -> str:
    """Returns the number of rows and the totals of all final tables."""
    totals = {name: "ordered" if name == "value_of_customers" else "amount" for name in _TABLES}
    parts = (
        f"select '{name}' as t, count(*) as n, cast(sum({total}) as decimal(20, 2)) as s from {{{{ ref('{name}') }}}}"
        for name, total in totals.items()
    )
    query = f"select * from ({' union all '.join(parts)}) order by t"
    shown = _run(each, folder, rows, "show", "--limit", "100", "--output", "json", "--inline", query)
    rows_shown = json.loads(shown[shown.index("{") :])["show"]
    return json.dumps([(row["t"], int(row["n"]), float(row["s"] or 0)) for row in rows_shown])


if __name__ == "__main__":
    sys.exit(main())

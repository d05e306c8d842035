"""A warehouse of many small tables: the time to list names, and the logs that a command reads."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Any

from benchmarks.dbt_work import project
from benchmarks.dbt_work.measured import Compared, in_turn
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore

SCHEMAS, TABLES = 5, 2_000
_READ = {
    "models/reader.sql": "{{ config(materialized='table') }} select * from {{ source('main', 't0000') }}",
    "models/sources.yml": "sources: [{name: main, schema: main, tables: [{name: t0000}]}]",
}
_LOG_FILE = re.compile(r"([^/]+)/_delta_log(?:/|$)")


def measure(folder: Path, share: float, rounds: int) -> list[Compared]:
    """Times listing one schema, and a command among few and many tables, which must read the same number of logs."""
    tables = int(TABLES * share)
    few, many = (_made(folder / name) for name in ("few_tables", "many_tables"))
    _copy(many / "warehouse", tables)
    for made in (few, many):
        _check_logs(made)
    root = many / "warehouse"
    listed = {"list the names": lambda: Catalog({"silt": LocalStore(root)}).relations("silt", "main")}
    commands = {"among 2 tables": lambda: project.run(few, "run"), "among all": lambda: project.run(many, "run")}
    return [
        in_turn(f"schema of {tables:,} tables", listed, rounds),
        in_turn(f"dbt run in a warehouse of {SCHEMAS * tables:,} tables", commands, rounds),
    ]


def _made(folder: Path) -> Path:
    """Creates a project that has created the table `t0000`, and now reads it."""
    made = project.make(folder, {"models/t0000.sql": "{{ config(materialized='table') }} select 1 as id"})
    project.run(made, "run")
    (made / "models" / "t0000.sql").unlink()
    return project.make(made, _READ)


def _copy(warehouse: Path, tables: int) -> None:
    """Fills each schema with copies of the first table."""
    first = warehouse / "main" / "t0000"
    for schema in ("main", *(f"schema_{number}" for number in range(1, SCHEMAS))):
        (warehouse / schema).mkdir(exist_ok=True)
        if schema != "main":
            shutil.copy(warehouse / "main" / "_schema.json", warehouse / schema)
        for number in range(tables):
            if schema != "main" or number:
                shutil.copytree(first, warehouse / schema / f"t{number:04}")


def _check_logs(made: Path) -> None:
    """Raises RuntimeError if a run opens the log of a table that none of its models names."""
    opened: set[str] = set()
    is_on = True

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if is_on and event in ("open", "os.listdir", "os.scandir"):
            opened.update(_LOG_FILE.findall(str(arguments[0])))

    sys.addaudithook(note)  # for the life of the process
    project.run(made, "run")
    is_on = False
    if opened - {"t0000"} != {"reader"}:
        raise RuntimeError(f"a run that names t0000 and reader has opened the logs of {sorted(opened)[:10]}")

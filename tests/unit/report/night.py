"""A night of the project in `shop` for target nightly: three commands of a held run, and results of `dbt compile`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from dbt.adapters.silt.engine.catalog.branches.command_documents import CommandDocuments
from dbt.adapters.silt.engine.catalog.branches.run_branches import BranchedRun
from dbt.adapters.silt.engine.catalog.branches.run_commands import CommandResults, RunCommand
from dbt.adapters.silt.records.command_result import CommandResult, Ending, KeptResults
from tests.unit.cli.house import House
from tests.unit.report import shop

RUN = "nightly-2026-11-28"
COMMANDS = (4, 3, 2)
"""How many minutes ago each command began."""

_NODES: Mapping[str, tuple[str, int, int, int]] = {
    "unit_test.shop.orders.counts": ("pass", 1, 0, 5),
    "seed.shop.countries": ("success", 2, 0, 4),
    "model.shop.customers": ("success", 2, 5, 12),
    "model.shop.orders": ("success", 1, 5, 10),
    "test.shop.not_null_name": ("pass", 1, 10, 12),
    "test.shop.unique_id": ("fail", 2, 12, 13),
}
"""The status of each node of the last command, its thread, and the seconds of its start and end."""


def build(house: House, target: Path) -> None:
    """Adds the night to the project: its run is the newest."""
    _hold(house)
    failed = [_result(2, node, *times) for node, times in _NODES.items()]
    late = _result(4, "model.shop.orders", "error", 1, 0, 3)
    reused = _result(3, "seed.shop.countries", "success", 2, 0, 0)
    reused["adapter_response"] = {"skipped": True, "reused": True, "table": "silt.main.countries"}
    again = _result(3, "model.shop.orders", "error", 1, 1, 4)
    for number, results in enumerate(([late], [reused, again], failed)):
        KeptResults(target).keep(f"night-{number}", "build", results)
    registry = target / "silt_runs.json"
    entries = [_entry(number, minutes, failed if number == 2 else [late]) for number, minutes in enumerate(COMMANDS)]
    shop.write(registry, {"runs": [*json.loads(registry.read_text())["runs"], *entries]})
    compiled = {"metadata": {"invocation_id": "looked"}, "args": {"which": "compile"}, "results": [_compiled()]}
    shop.write(target / "run_results.json", compiled)


def _hold(house: House) -> None:
    entered: list[CommandDocuments] = []

    def enter(documents: CommandDocuments) -> None:
        documents.begin(RunCommand("night-2", "dbt build", "host", 7, selected=frozenset(_NODES)))
        entered.append(documents)

    house.catalog.run_branches("silt").open(BranchedRun("shop", "nightly", RUN), enter)
    failed = frozenset(["test.shop.unique_id"])
    entered[0].end(CommandResults(frozenset(_NODES) - failed, failed))


def _entry(number: int, minutes: int, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    ended = CommandResult.of(Ending.FAILED, results)
    entry = shop.entry(RUN, minutes, ended, invocation_id=f"night-{number}", which="build", publication="held")
    return {**entry, "command": "/usr/bin/dbt build --target nightly", "target": "nightly"}


def _result(minutes: int, node: str, status: str, thread: int, begin: int, end: int) -> dict[str, Any]:
    base = datetime.now(timezone.utc) - timedelta(minutes=minutes)
    times = [(base + timedelta(seconds=seconds)).isoformat() for seconds in (begin, end)]
    result = shop.result(node, status, None, thread, f"{status} of {node}")
    return {**result, "timing": [dict(zip(("started_at", "completed_at"), times, strict=True))]}


def _compiled() -> dict[str, Any]:
    return shop.result("model.shop.late", "success", (500, 501), 1, "OK")

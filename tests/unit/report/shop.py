"""A small project for tests of the page: a warehouse with runs, and the artifacts of dbt; without Spark and dbt.

Its names, comments and messages are an attacker's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from dbt.adapters.silt.engine.catalog.names.documents import View
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from dbt.adapters.silt.records.command_result import CommandResult, Ending, KeptResults
from dbt.adapters.silt.records.commit_facts import CommitFacts
from dbt.adapters.silt.records.journal import CommitJournal, JournalEntry
from dbt.adapters.silt.records.run_registry import RunEntry
from dbt.adapters.silt.report.document import Source, document
from tests.unit.cli.house import House, rows

HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">\u2028&amp;"
UPKEEP = "compacted 3 tables, 12 GB, 2m10s of 5m; 4 tables wait"
SECRET = "the-password-of-the-profile"
_NOW = datetime.now(timezone.utc)


def made(house: House, target: Path) -> dict[str, Any]:
    """Returns the data of this project's page."""
    found: dict[str, Any] = json.loads(document(Source(house.catalog, target), 1_800_000_000_000).json)
    return found


def build(house: House, target: Path) -> None:
    """Creates a project of two runs: the first builds all models; in the second, dbt skips a model after a failure."""
    orders = house.running("monday", "model.shop.orders").create("main.orders", rows(0, 40))
    house.running("monday", "model.shop.customers").create("main.customers", rows(0, 5))
    for start in range(40, 400, 40):
        house.append(orders, rows(start - 25, 40))
    _conflicting(house.running("tuesday", "model.shop.orders"), orders)
    house.mark(orders, [1, 2])
    house.catalog.put_view(View(house.name("main.seen"), "select 1"))
    target.mkdir(parents=True, exist_ok=True)
    write(target / "manifest.json", manifest())
    write(target / "run_results.json", run_results())
    write(target / "sources.json", sources())
    good, bad = CommandResult.of(Ending.SUCCESS, ()), CommandResult.of(Ending.FAILED, run_results()["results"])
    entries = [entry("monday", 120, replace(good, upkeep=UPKEEP)), entry("tuesday", 5, bad), entry("broken", 60)]
    write(target / "silt_runs.json", {"runs": entries})
    built = result("model.shop.orders", "success", (0, 8), 1, "v0")
    KeptResults(target).keep("monday-1", "build", [built])
    skip = JournalEntry(moment(4), "silt.main.customers", "tuesday-1", "dev", "tuesday", "model.shop.customers")
    journal = CommitJournal(target)
    journal.append(replace(skip, table_version=0, skipped=True))


def rerun(target: Path, node: str) -> None:
    """Adds a run that builds a single node; the results of the second run are kept."""
    KeptResults(target).keep("tuesday-1", "build", run_results()["results"])
    KeptResults(target).keep("rerun-1", "run", [result(node, "success", (60, 61), 1, "v12")])
    registry = target / "silt_runs.json"
    entries = json.loads(registry.read_text())["runs"]
    write(registry, {"runs": [*entries, entry("rerun", -2, CommandResult.of(Ending.SUCCESS, ()), which="run")]})


def _conflicting(house: House, log: DeltaLog) -> None:
    """Commits from an old snapshot, so that the commit is retried."""
    base = log.snapshot()
    house.append(log, rows(2000, 2))
    facts = house.facts or CommitFacts()
    settings = CommitSettings(commit_info=facts.commit_info(), statement_attempt=2, user_metadata=HOSTILE)
    metrics = {"numTargetRowsInserted": "3", "numTargetRowsUpdated": "4", "numTargetRowsDeleted": "0"}
    commit(log, base, Changes(Operation("MERGE", metrics=metrics)), ReadSet(), settings)


def manifest() -> dict[str, Any]:
    """Returns the manifest: two sources, six models, a seed, tests, a unit test and an exposure."""
    nodes = [
        _model("orders", ["source.shop.raw.orders"], {"materialized": "incremental", "unique_key": "id"}),
        _model("customers", ["source.shop.raw.customers", "seed.shop.countries"]),
        _model("late", ["model.shop.orders", "model.shop.customers"]),
        _model("held", ["model.shop.late"], {"materialized": "view"}),
        {**_model("countries", []), "resource_type": "seed", "unique_id": "seed.shop.countries"},
        _test("unique", "id"),
        _test("not_null", "name"),
        _model("seen", ["model.shop.orders"], {"materialized": "view"}),
        _model("inner", ["model.shop.customers"], {"materialized": "ephemeral"}),
    ]
    found = {node["unique_id"]: node for node in nodes}
    raw = {f"source.shop.raw.{name}": _source(name) for name in ("orders", "customers")}
    metadata = {"project_name": f"shop {HOSTILE}", "generated_at": moment(10)}
    boards = {"exposure.shop.board": _exposure("board", ["model.shop.held", "model.shop.seen"])}
    unit = {"unit_test.shop.orders.counts": _unit_test("counts", "orders")}
    return {"metadata": metadata, "nodes": found, "sources": raw, "unit_tests": unit, "exposures": boards}


def run_results() -> dict[str, Any]:
    """Returns the results of the second run."""
    response = {"run_id": "tuesday", "table": "silt.main.orders", "table_version": 11, "skipped": False}
    results = [
        result("model.shop.orders", "success", (0, 8), 1, "v11: 3 inserted, 4 updated", response),
        result("model.shop.customers", "success", (0, 2), 2, "skipped", {**response, "skipped": True}),
        result("model.shop.late", "error", (9, 12), 1, f"Division by zero in {HOSTILE}"),
        result("model.shop.held", "skipped", None, 2, None),
        result("test.shop.unique_id", "fail", (12, 13), 2, "Got 2 results", failures=2),
        result("test.shop.not_null_name", "warn", (12, 14), 1, "Got 1 result", failures=1),
    ]
    return {"metadata": {"invocation_id": "tuesday-1"}, "args": {"which": "build", "vars": SECRET}, "results": results}


def sources() -> dict[str, Any]:
    """Returns the results of `dbt source freshness`."""
    found = [("orders", "error"), ("customers", "pass")]
    times = {"max_loaded_at": moment(3000), "snapshotted_at": moment(1)}
    return {"results": [{"unique_id": f"source.shop.raw.{name}", "status": status, **times} for name, status in found]}


def _model(name: str, parents: Sequence[str], config: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {
        "unique_id": f"model.shop.{name}",
        "resource_type": "model",
        "name": name,
        "alias": name,
        "database": "silt",
        "schema": "main",
        "original_file_path": f"models/{name}.sql",
        "description": f"What {name} is. {HOSTILE}",
        "config": {"materialized": "table", **(config or {})},
        "columns": {"id": {"name": "id", "description": "the key"}},
        "depends_on": {"nodes": list(parents)},
        "raw_code": SECRET,
    }


def _source(name: str) -> dict[str, Any]:
    body = {"unique_id": f"source.shop.raw.{name}", "resource_type": "source", "name": name, "source_name": "raw"}
    return {**body, "identifier": name, "database": "silt", "schema": "landing"}


def _test(kind: str, column: str) -> dict[str, Any]:
    return {
        "unique_id": f"test.shop.{kind}_{column}",
        "resource_type": "test",
        "name": f"{kind}_{column}",
        "attached_node": "model.shop.orders",
        "column_name": column,
        "test_metadata": {"name": kind, "kwargs": {"column_name": column}},
        "depends_on": {"nodes": ["model.shop.orders"]},
    }


def _unit_test(name: str, model: str) -> dict[str, Any]:
    body = {"unique_id": f"unit_test.shop.{model}.{name}", "resource_type": "unit_test", "name": name}
    return {**body, "depends_on": {"nodes": [f"model.shop.{model}"]}}


def _exposure(name: str, parents: Sequence[str]) -> dict[str, Any]:
    body = {"unique_id": f"exposure.shop.{name}", "resource_type": "exposure", "name": name, "type": "dashboard"}
    return {**body, "depends_on": {"nodes": list(parents)}}


def result(
    node: str,
    status: str,
    seconds: tuple[int, int] | None,
    thread: int,
    message: str | None,
    response: Mapping[str, Any] | None = None,
    failures: int | None = None,
) -> dict[str, Any]:
    times = [] if seconds is None else [{"name": "execute", **_times(*seconds)}]
    return {
        "unique_id": node,
        "status": status,
        "thread_id": f"Thread-{thread} (worker)",
        "timing": times,
        "message": message,
        "failures": failures,
        "adapter_response": dict(response or {}),
    }


def _times(started: int, ended: int) -> dict[str, str]:
    begin = _NOW + timedelta(minutes=5)
    moments = (begin + timedelta(seconds=started), begin + timedelta(seconds=ended))
    return dict(zip(("started_at", "completed_at"), (each.isoformat() for each in moments), strict=True))


def entry(run_id: str, minutes: int, ended: CommandResult | None = None, **fields: Any) -> dict[str, Any]:
    """Returns a command of a run in `silt_runs.json`, so many minutes ago; without a result it was killed."""
    finished = ended is not None
    made = RunEntry(
        f"{run_id}-1",
        run_id,
        f"/{SECRET}/dbt build --select {HOSTILE}",
        f"/home/{SECRET}",
        moment(minutes),
        variables=f"{{secret: {SECRET}}}",
        target="dev",
        finished=finished,
        ended_at=moment(minutes - 1) if finished else None,
        host=SECRET,
    )
    body = {name: value for name, value in asdict(made).items() if name != "running"}
    return {**body, "result": None if ended is None else ended.to_json(), **fields}


def moment(minutes: float) -> str:
    return (_NOW - timedelta(minutes=minutes)).isoformat()


def write(path: Path, body: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(body), encoding="utf-8")

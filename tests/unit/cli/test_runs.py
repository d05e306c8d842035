"""`silt runs`, `silt run` and `silt history`: the facts about runs in the logs."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.silt.cli.main import main
from dbt.adapters.silt.cli.output.answers import Rows
from dbt.adapters.silt.cli.runs import answer
from dbt.adapters.silt.engine.catalog.branches.command_documents import CommandDocuments
from dbt.adapters.silt.engine.catalog.branches.run_branches import BranchedRun
from dbt.adapters.silt.engine.catalog.branches.run_commands import CommandResults, RunCommand
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from dbt.adapters.silt.records.command_result import CommandResult, Ending, KeptResults
from dbt.adapters.silt.records.commit_facts import CommitFacts
from dbt.adapters.silt.records.journal import CommitJournal, JournalEntry
from dbt.adapters.silt.records.known_runs import Unpublished, known_runs
from dbt.adapters.silt.records.project_records import ProjectRecords
from dbt.adapters.silt.records.run_history import histories, runs
from dbt.adapters.silt.records.run_registry import RunEntry, RunRegistry
from tests.unit.cli.house import House, rows
from tests.unit.engine.kernel.log_builder import stated_at

DAY = "2026-03-01T"
AsJson = Callable[..., Any]
Silt = Callable[..., str]


def two_runs(house: House) -> None:
    """Run `a` creates two tables and fills one; run `b` adds to it; another writer adds in between."""
    first, second = house.running("a"), house.running("b", "model.shop.künden")
    orders = first.create("main.orders", rows(0, 10))
    first.create("main.künden", rows(0, 2))
    first.append(orders, rows(10, 5))
    house.append(orders, rows(20, 3))
    second.append(orders, rows(30, 4))


def test_runs_are_shown_newest_first_with_their_changes(house: House, as_json: AsJson) -> None:
    two_runs(house)
    newest, oldest = as_json("runs")["runs"]
    assert [newest["run_id"], oldest["run_id"]] == ["b", "a"]
    assert oldest["tables"] == ["silt.main.künden", "silt.main.orders"]
    assert (oldest["commits"], oldest["rows_inserted"], oldest["rows_updated"]) == (3, 17, None)
    assert newest["nodes"] == ["model.shop.künden"]
    assert newest["invocations"] == ["invocation-of-b"]
    assert newest["first_commit_at"] <= newest["last_commit_at"]


def test_facts_missing_in_the_journal_are_unknown_and_not_zero(house: House, as_json: AsJson, silt: Silt) -> None:
    two_runs(house)
    (newest, _) = as_json("runs")["runs"]
    assert (newest["skipped"], newest["commit_retries"], newest["statement_reruns"]) == (None, 0, 0)
    assert silt("runs").splitlines()[1].split()[-1] == "-"


def test_conflicts_are_counted_from_the_log_alone(house: House, as_json: AsJson) -> None:
    log = house.running("a").create()
    base = log.snapshot()
    house.append(log, rows(0, 1))
    facts = CommitFacts("invocation-of-b", run_id="b")
    settings = CommitSettings(
        commit_info=facts.commit_info(), statement_attempt=3, read_versions={"silt.main.raw": (4, 7)}
    )
    commit(log, base, Changes(Operation("WRITE")), ReadSet(), settings)
    newest, oldest = as_json("runs")["runs"]
    assert (newest["commit_retries"], newest["statement_reruns"]) == (1, 2)
    assert (oldest["commit_retries"], oldest["statement_reruns"]) == (0, 0)
    [shown] = as_json("run", "b")["commits"]
    assert (shown["attempts"], shown["statement_attempts"]) == (2, 3)
    assert shown["read_versions"] == {"silt.main.raw": [4, 7]}


def test_commits_of_other_writers_are_not_runs(house: House, silt: Silt, as_json: AsJson) -> None:
    house.append(house.create(), rows(0, 1))
    assert as_json("runs")["runs"] == []
    assert silt("runs") == "no run has changed a table of this warehouse\n"


def test_dropped_tables_are_missing_in_the_runs(house: House, as_json: AsJson) -> None:
    two_runs(house)
    house.catalog.drop_table(house.name("main.künden"))
    assert as_json("runs")["runs"][1]["tables"] == ["silt.main.orders"]


def test_an_unreadable_table_does_not_hide_other_tables(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    two_runs(house)
    (house.folder / "main" / "orders" / commit_path(1)).write_text("no json")
    assert main(["runs", "--warehouse", str(house.folder)]) == 1
    printed = capsys.readouterr()
    assert "a  " in printed.out
    assert "silt.main.orders@v1" in printed.err


def test_at_most_the_requested_number_of_runs_is_shown(house: House, as_json: AsJson) -> None:
    two_runs(house)
    assert [each["run_id"] for each in as_json("runs", "-n", "1")["runs"]] == ["b"]


def test_a_runs_commits_are_in_order_of_time_with_marks_for_rolled_back_commits(house: House, as_json: AsJson) -> None:
    two_runs(house)
    orders = house.catalog.table(house.name("main.orders"))
    house.restore(orders, 1)
    run = as_json("run", "b")
    assert [(each["table"], each["version"], each["rolled_back_by"]) for each in run["commits"]] == [
        ("silt.main.orders", 3, 4)
    ]
    assert [each["rolled_back_by"] for each in as_json("run", "a")["commits"]] == [None, None, None]


def test_undoing_a_restore_revalidates_the_commits_that_it_undid(house: House, as_json: AsJson) -> None:
    two_runs(house)
    orders = house.catalog.table(house.name("main.orders"))
    house.restore(orders, 1)
    house.restore(orders, 3)
    assert [each["rolled_back_by"] for each in as_json("run", "b")["commits"]] == [None]


@pytest.mark.parametrize("text", ["nightly-2026-11-20", "nightly-2026-11-20T", "invocation-of-nightly-2026-11-20T03"])
def test_a_run_is_found_by_the_beginning_of_its_id_and_by_one_of_its_invocations(
    house: House, as_json: AsJson, text: str
) -> None:
    house.running("nightly-2026-11-20T03").create("main.a", rows(0, 1))
    house.running("nightly-2026-11-21T03").create("main.b", rows(0, 1))
    assert as_json("run", text)["run_id"] == "nightly-2026-11-20T03"


@pytest.mark.parametrize(
    ("text", "said"), [("nightly", "2 runs begin with"), ("weekly", "has a commit of a run `weekly`")]
)
def test_a_missing_or_ambiguous_run_is_an_error_with_a_remedy(
    house: House, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    house.running("nightly-1").create("main.a", rows(0, 1))
    house.running("nightly-2").create("main.b", rows(0, 1))
    assert main(["run", text, "--warehouse", str(house.folder)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert said in printed.err


def test_history_shows_the_newest_version_first_with_its_writer(house: House, as_json: AsJson) -> None:
    two_runs(house)
    versions = as_json("history", "main.orders")["versions"]
    assert [(each["version"], each["run_id"], each["rows_inserted"]) for each in versions] == [
        (3, "b", 4),
        (2, None, 3),
        (1, "a", 5),
        (0, "a", 10),
    ]


def test_a_commit_with_commit_info_after_its_first_line_is_read_too(house: House, as_json: AsJson) -> None:
    log = house.running("a").create(content=rows(0, 1))
    path = house.folder / "main" / "orders" / commit_path(0)
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([*lines[1:], lines[0]]))
    assert as_json("history", "main.orders")["versions"][0]["run_id"] == "a"
    assert log.exists()


def test_only_the_beginning_of_a_long_commit_is_read(house: House, as_json: AsJson) -> None:
    house.running("a").create(content=rows(0, 1))
    path = house.folder / "main" / "orders" / commit_path(0)
    with open(path, "ab") as file:
        file.write(b" " * 200_000 + b"\n")
    assert as_json("history", "main.orders")["versions"][0]["run_id"] == "a"


def test_a_table_dropped_while_the_history_is_read_is_omitted(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    two_runs(house)
    found = house.catalog.relations

    def then_dropped(database: str, schema: str) -> Any:
        entries = found(database, schema)
        house.catalog.drop_table(house.name("main.künden"))
        return entries

    monkeypatch.setattr(house.catalog, "relations", then_dropped)
    histories_left = histories(house.catalog)
    assert [str(history.table) for history in histories_left] == ["silt.main.orders"]
    assert [history.problem for history in histories_left] == [None]
    assert [run.run_id for run in runs(histories_left)] == ["b", "a"]


def test_times_are_those_stated_in_the_commits(house: House, as_json: AsJson) -> None:
    house.running("a").create(content=rows(0, 1))
    commit = house.folder / "main" / "orders" / commit_path(0)
    stated_at(commit, 1_700_000_000_000)
    os.utime(commit, (1_800_000_000, 1_800_000_000))
    assert as_json("runs")["runs"][0]["first_commit_at"] == "2023-11-14T22:13:20.000Z"


def test_a_run_is_shown_with_its_command_target_and_duration(house: House) -> None:
    two_runs(house)
    command: dict[str, Any] = {"run_id": "b", "directory": "/shop", "finished": True}
    first = RunEntry("1", command="dbt run", started_at=f"{DAY}10:00:00", ended_at=f"{DAY}10:01:10.5", **command)
    again = RunEntry("2", command="dbt retry", started_at=f"{DAY}11:00:00", ended_at=f"{DAY}12:00:00", **command)
    again = replace(again, which="build", target="dev")
    killed = replace(first, invocation_id="3", run_id="a", finished=False, ended_at=None)
    records = ProjectRecords((first, again, killed))
    found = answer(known_runs(runs(histories(house.catalog)), records), [], records)
    block = found.blocks[0]
    assert isinstance(block, Rows)
    shown = [dict(zip(block.columns, row, strict=True)) for row in block.rows]
    assert [(row["run"], row["took"]) for row in shown] == [
        ("dbt build, dev, 10:00", "3670.5s"),
        ("run, dev, 10:00", "-"),
    ]
    assert [each["commands"] for each in found.document["runs"]] == [["dbt run", "dbt retry"], ["dbt run"]]
    assert [each["seconds"] for each in found.document["runs"]] == [3670.5, None]


ORDERS, TEST = "model.shop.orders", "test.shop.unique_orders_id.0a1b2c3d4e"
FAILED = [{"unique_id": ORDERS, "status": "success"}, {"unique_id": TEST, "status": "fail", "message": "Got 2 results"}]
GOOD = CommandResult.of(Ending.SUCCESS, FAILED[:1])
BAD = CommandResult.of(Ending.FAILED, FAILED)
KILLED = None
ID = "c73dcb96-4599-45eb-92d9-5453e2ddea2e"


def ran(folder: Path, run_id: str, day: int, result: CommandResult | None, **fields: Any) -> str:
    """Records a command in a project's target folder."""
    registry = RunRegistry(folder)
    typed = {"command": "dbt build", **fields}
    time = f"2026-03-{day:02}T03:00:00+00:00"
    entry = RunEntry(f"{run_id}-{day}", run_id, directory="/shop", started_at=time, **typed)
    registry.enter(entry)
    registry.end(entry.invocation_id, finished=result is not None, result=result)
    return entry.invocation_id


def test_a_run_is_shown_with_its_result_and_the_names_of_failed_nodes(
    house: House, tmp_path: Path, silt: Silt, as_json: AsJson
) -> None:
    house.running("a").create("main.orders", rows(0, 1))
    ran(tmp_path, "a", 1, BAD)
    place = ("--target-path", str(tmp_path))
    heads, cells, *_ = silt("runs", *place).splitlines()
    assert heads.split()[:4] == ["run", "id", "result", "failed"]
    assert "failed: 1 pass, 1 error  unique_orders_id  2026-03-01" in cells
    [run] = as_json("runs", *place)["runs"]
    assert (run["result"], run["counts"]["error"], run["failed"]) == ("failed", 1, ["unique_orders_id"])


def test_runs_are_shown_by_their_names_within_120_columns(house: House, tmp_path: Path, silt: Silt) -> None:
    long = [{**FAILED[1], "unique_id": f"test.shop.accepted_values_fct_orders_status__{each}.0a1b"} for each in "abcd"]
    result = CommandResult.of(Ending.FAILED, [*FAILED, *long])
    house.running(ID).create("main.orders", rows(0, 10))
    ran(tmp_path, ID, 1, result, which="build", target="dev")
    ran(tmp_path, "nightly-2026-11-28", 2, result, which="build", target="nightly", command="dbt build -s orders+")
    shown = silt("runs", "--target-path", str(tmp_path))
    assert max(map(len, shown.splitlines())) <= 120
    assert "dbt build, dev, 03:00      c73dcb96            failed: 1 pass, 5 error  " in shown
    assert "unique_orders_id and 4 more" in shown and ID not in shown
    assert "all failures of a run: silt run c73dcb96" in shown


def test_failures_that_fit_are_not_shortened(house: House, tmp_path: Path, silt: Silt) -> None:
    house.running("a").create("main.orders", rows(0, 1))
    ran(tmp_path, "a", 1, BAD)
    assert "all failures" not in silt("runs", "--target-path", str(tmp_path))


def test_the_id_that_is_shown_is_accepted_and_the_whole_id_is_shown_once(house: House, tmp_path: Path) -> None:
    house.running(ID).create("main.orders", rows(0, 1))
    ran(tmp_path, ID, 1, GOOD, which="build")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(["run", ID[:8], "--warehouse", str(house.folder), "--target-path", str(tmp_path)]) == 0
        assert main(["rollback", ID[:8], "--dry-run", "--warehouse", str(house.folder)]) == 0
        assert main(["history", "main.orders", "--warehouse", str(house.folder)]) == 0
    assert re.findall(f"[^ ]*{ID}[^ ]*$", printed.getvalue(), re.MULTILINE)[:1] == [ID]
    assert f"run {ID[:8]}: would be" in printed.getvalue() or "Created by the run" in printed.getvalue()
    assert f"-  {ID[:8]}  model.shop.orders" in printed.getvalue()


def test_a_command_is_found_by_the_beginning_of_its_id(house: House, as_json: AsJson) -> None:
    house.running("nightly").create("main.orders", rows(0, 1))
    assert as_json("run", "invocation-of-nig")["run_id"] == "nightly"


def test_the_error_of_a_hook_is_shown_by_the_name_of_the_hook(house: House, tmp_path: Path, silt: Silt) -> None:
    house.running("a").create("main.orders", rows(0, 1))
    said = "Compilation Error in operation shop-on-run-end-0 (./dbt_project.yml)\n  not all sources were fresh"
    ran(tmp_path, "nightly", 2, CommandResult.of(Ending.FAILED, (), said), began=False)
    shown = silt("runs", "--target-path", str(tmp_path))
    assert " shop-on-run-end-0 " in shown and "Compilation Error" not in shown


def test_a_run_without_commits_is_shown_and_found(house: House, tmp_path: Path, as_json: AsJson) -> None:
    house.running("a").create("main.orders", rows(0, 1))
    problem = CommandResult.of(Ending.FAILED, (), "Parsing Error")
    ran(tmp_path, "a", 1, GOOD)
    ran(tmp_path, "nightly", 2, problem, began=False)
    place = ("--target-path", str(tmp_path))
    found = {run["run_id"]: run for run in as_json("runs", *place)["runs"]}
    assert set(found) == {"nightly", "a"}
    assert (found["nightly"]["commits"], found["nightly"]["problems"]) == (0, ["Parsing Error"])
    run = as_json("run", "nightly", *place)
    assert (run["result"], run["commits"], run["commands"][0]["state"]) == ("failed", [], "failed")


@pytest.mark.parametrize(
    ("results", "state", "code"),
    [
        ([GOOD], "succeeded", 0),
        ([BAD], "failed", 1),
        ([BAD, GOOD], "succeeded", 0),
        ([GOOD, KILLED], "broken off", 1),
        ([CommandResult(Ending.INTERRUPTED)], "interrupted", 1),
    ],
)
def test_the_check_option_fails_unless_the_last_runs_last_command_succeeded(
    house: House, tmp_path: Path, as_json: AsJson, results: list[CommandResult | None], state: str, code: int
) -> None:
    ran(tmp_path, "before", 1, BAD)
    for day, result in enumerate(results, 2):
        ran(tmp_path, "nightly", day, result)
    place = ("--target-path", str(tmp_path))
    assert [run["result"] for run in as_json("runs", "--last", "--check", *place, code=code)["runs"]] == [state]
    assert as_json("run", "nightly", "--check", *place, code=code)["result"] == state


def test_a_retry_replaces_the_result_of_the_command_that_it_repeats_and_another_command_does_not(
    tmp_path: Path,
) -> None:
    failed = ran(tmp_path, "a", 1, BAD, variables="{day: 1}")
    ran(tmp_path, "b", 2, BAD, variables="{day: 1}")
    ran(tmp_path, "a", 3, GOOD, repeats=failed)
    ran(tmp_path, "b", 4, GOOD)
    states = {each.run_id: each.state for each in known_runs((), ProjectRecords.of(tmp_path))}
    assert states == {"a": "succeeded", "b": "failed"}


@pytest.mark.parametrize(("last", "state"), [("published", "succeeded"), ("held", "held")])
def test_a_run_is_no_longer_held_when_a_later_command_has_published_it(tmp_path: Path, last: str, state: str) -> None:
    ran(tmp_path, "a", 1, BAD, variables="{amount: null}", publication="held")
    ran(tmp_path, "a", 2, GOOD, publication=last)
    [run] = known_runs((), ProjectRecords.of(tmp_path))
    assert (run.state, bool(run.failed)) == (state, last == "held")


def test_the_check_option_fails_without_any_run(house: House, silt: Silt) -> None:
    silt("runs", "--last", "--check", code=1)


def test_a_run_of_another_machine_has_no_result(house: House, as_json: AsJson) -> None:
    house.running("a").create("main.orders", rows(0, 1))
    assert as_json("runs", "--check", code=1)["runs"][0]["result"] is None


def test_the_last_thirty_runs_are_summarised_in_a_line_of_marks(house: House, tmp_path: Path, silt: Silt) -> None:
    for day, result in enumerate([*[GOOD] * 6, BAD, KILLED, GOOD], 1):
        ran(tmp_path, f"nightly-{day}", day, result)
    assert silt("runs", "--target-path", str(tmp_path)).splitlines()[-1] == ("last 9 runs, the newest last: ✓✓✓✓✓✓✗✗✓")


def test_a_run_shows_its_nodes_in_order_of_time(house: House, tmp_path: Path, silt: Silt, as_json: AsJson) -> None:
    invocation = ran(tmp_path, "a", 1, BAD)
    timing = [{"started_at": "2026-03-01T03:00:01Z", "completed_at": "2026-03-01T03:00:03.5Z"}]
    KeptResults(tmp_path).keep(invocation, "build", [{**each, "timing": timing} for each in FAILED])
    place = ("--target-path", str(tmp_path))
    lines = silt("run", "a", *place).splitlines()
    assert any(line.split() == ["2026-03-01", "03:00:01", "2.5s", "-", ORDERS, "built", "-"] for line in lines)
    assert any(line.endswith(f"{TEST}  failed  Got 2 results") for line in lines)
    assert {each["node"]: each["state"] for each in as_json("run", "a", *place)["results"]} == {
        ORDERS: "built",
        TEST: "failed",
    }


def test_a_run_shows_why_a_node_was_reused(house: House, tmp_path: Path, as_json: AsJson, silt: Silt) -> None:
    two_runs(house)
    reason = "unchanged since silt.main.orders@v1 (run a)"
    entry = JournalEntry(
        f"{DAY}00:00:00Z", "silt.main.orders", run_id="b", table_version=1, operation="REUSE", skipped=True
    )
    CommitJournal(tmp_path).append(replace(entry, reason=reason))
    (skip,) = as_json("run", "b", "--target-path", str(tmp_path))["skipped"]
    assert (skip["done_by_version"], skip["reason"]) == (1, reason)
    assert silt("run", "b", "--target-path", str(tmp_path)).splitlines()[-1].endswith(reason)


HOOK = "operation.shop.shop-on-run-end-0"


def kept(target: Path, run_id: str, day: int, problem: str | None = None, fields: Any = None, **statuses: str) -> None:
    """Records a command with the results of its nodes."""
    names = {"orders": ORDERS, "test": TEST, "hook": HOOK}
    results = [{"unique_id": names[each], "status": status} for each, status in statuses.items()]
    is_bad = problem is not None or bool({"error", "fail"} & set(statuses.values()))
    result = CommandResult.of(Ending.FAILED if is_bad else Ending.SUCCESS, results, problem)
    KeptResults(target).keep(ran(target, run_id, day, result, **(fields or {})), "build", results)


def test_the_last_result_of_each_node_counts_also_with_other_variables(tmp_path: Path) -> None:
    kept(tmp_path, "a", 1, fields={"variables": "{bad: true}"}, orders="error", test="skipped", hook="error")
    kept(tmp_path, "a", 2, fields={"variables": "{}"}, orders="success", test="pass", hook="success")
    kept(tmp_path, "b", 1, fields={"variables": "{bad: true}"}, orders="success", test="fail", hook="error")
    kept(tmp_path, "b", 2, fields={"command": "dbt build -s orders"}, orders="success", hook="error")
    kept(tmp_path, "c", 1, orders="success", test="fail")
    kept(tmp_path, "c", 2, orders="error", test="skipped")
    found = {each.run_id: each for each in known_runs((), ProjectRecords.of(tmp_path))}
    assert (found["a"].state, found["a"].counts["pass"], found["a"].failed) == ("succeeded", 3, ())
    assert (found["b"].state, found["b"].counts["pass"], found["b"].counts["error"]) == ("failed", 1, 2)
    assert sorted(found["b"].failed) == ["shop-on-run-end-0", "unique_orders_id"]
    assert set(found["c"].failed) == {"orders", "unique_orders_id"}


def test_a_held_run_names_no_corrected_test_and_each_hook_once(tmp_path: Path) -> None:
    held = {"publication": "held"}
    kept(tmp_path, "a", 1, fields={**held, "variables": "{x: 1}"}, orders="success", test="fail", hook="error")
    kept(tmp_path, "a", 2, fields=held, orders="success", test="pass", hook="error")
    branch = Unpublished("a", "dev", 0)
    [run] = known_runs((), ProjectRecords.of(tmp_path), unpublished=[branch])
    assert (run.state, run.failed, run.counts["error"]) == ("held", ("shop-on-run-end-0",), 1)
    [elsewhere] = known_runs((), ProjectRecords.of(tmp_path), unpublished=[])
    assert elsewhere.state == "failed", "another project has published or dropped it"


def test_a_run_that_ended_outside_of_a_node_has_succeeded_when_it_is_published(tmp_path: Path) -> None:
    kept(tmp_path, "a", 1, "Compilation Error", {"publication": "held"}, orders="success")
    kept(tmp_path, "b", 1, "Compilation Error", {"publication": "held"}, orders="success")
    kept(tmp_path, "b", 2, fields={"publication": "published", "command": "dbt run"}, orders="success")
    kept(tmp_path, "c", 1, fields={"publication": "held"}, orders="success", test="fail")
    registry = RunRegistry(tmp_path)
    registry.mark_published("a")
    registry.mark_published("c")
    states = {each.run_id: (each.state, each.problems) for each in known_runs((), ProjectRecords.of(tmp_path))}
    assert states == {"a": ("succeeded", ()), "b": ("succeeded", ()), "c": ("failed", ())}


def test_unpublished_runs_of_other_targets_and_machines_are_shown(
    house: House, tmp_path: Path, as_json: AsJson
) -> None:
    runs_of = house.catalog.run_branches("silt")
    entered: list[CommandDocuments] = []

    def enter(documents: CommandDocuments) -> None:
        documents.begin(RunCommand("1", "dbt build", "elsewhere", 7, selected=frozenset([ORDERS, TEST])))
        entered.append(documents)

    runs_of.open(BranchedRun("shop", "ci", "nightly"), enter)
    place = ("--target-path", str(tmp_path))
    [run] = as_json("runs", *place)["runs"]
    assert (run["run_id"], run["result"], run["targets"]) == ("nightly", "running", ["ci"])
    entered[0].end(CommandResults(frozenset([ORDERS]), frozenset([TEST])))
    [run] = as_json("runs", "--last", "--check", *place, code=1)["runs"]
    assert (run["result"], run["failed"]) == ("held", ["unique_orders_id"])
    assert as_json("run", "nightly", *place)["result"] == "held"


def begun(house: House, run_id: str, results: CommandResults | None) -> CommandDocuments:
    """A run with one command; without results it works."""
    entered: list[CommandDocuments] = []

    def enter(documents: CommandDocuments) -> None:
        documents.begin(RunCommand(run_id, f"dbt build -s {run_id}", "host", 7, selected=frozenset([ORDERS, TEST])))
        entered.append(documents)

    house.catalog.run_branches("silt").open(BranchedRun("shop", "dev", run_id), enter)
    if results is not None:
        entered[0].end(results)
    return entered[0]


def test_publish_if_passed_publishes_a_run_once_everything_has_passed(
    house: House, silt: Silt, as_json: AsJson, capsys: pytest.CaptureFixture[str]
) -> None:
    working = begun(house, "day1", None)
    assert as_json("publish", "day1", "--if-passed", code=1)["reasons"] == [
        "`dbt build -s day1` (process 7 of host) is at work"
    ]
    for command in ("publish", "drop-run"):
        assert main([command, "day1", "--warehouse", str(house.folder)]) == 2
        assert "SILT_RUN_IN_PROGRESS" in capsys.readouterr().err
    working.end(CommandResults(frozenset([ORDERS]), frozenset([TEST])))
    assert "`dbt build -s day1`: failed: unique_orders_id" in silt("publish", "day1", "--if-passed", code=1)
    begun(house, "day2", CommandResults(frozenset([ORDERS, TEST])))
    assert "run day2: published" in silt("publish", "day2", "--if-passed")
    assert "run day2: published before" in silt("publish", "day2", "--if-passed")
    assert "run day1: published" in silt("publish", "day1")
    silt("publish", "unknown", "--if-passed", code=2)


def test_a_run_of_the_endpoint_names_the_clients_that_sent_its_statements(
    house: House, as_json: AsJson, silt: Silt
) -> None:
    replace(house, facts=CommitFacts(target="dev", run_id="night", client="ann (thrift)")).create("main.orders")
    runs_of = house.catalog.run_branches("silt")
    command = RunCommand("1", "session of bob (connect _SPARK_CONNECT_PYTHON)", "elsewhere", 7)
    runs_of.open(BranchedRun("endpoint", "dev", "evening"), lambda documents: documents.begin(command))
    found = {each["run_id"]: each["clients"] for each in as_json("runs")["runs"]}
    assert found == {"night": ["ann (thrift)"], "evening": ["bob (connect _SPARK_CONNECT_PYTHON)"]}
    assert as_json("run", "night")["commits"][0]["client"] == "ann (thrift)"
    assert "session of ann (thrift), dev, " in silt("run", "night")
    assert "session of bob (connect _SPARK_CONNECT_PYTHON), dev, " in silt("runs")

"""`silt rollback`: a run undone from the command line."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from dbt.adapters.silt.cli.main import main
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.records.journal import CommitJournal, JournalEntry
from dbt.adapters.silt.records.run_registry import RunEntry, RunRegistry
from dbt.adapters.silt.records.units import run_id_of
from tests.unit.cli.house import House, rows

AsJson = Callable[..., Any]
Silt = Callable[..., str]


def two_runs(house: House) -> tuple[DeltaLog, DeltaLog]:
    """Run `a` creates two tables of ten rows; run `b` adds five to each, in two units of work, and creates a third."""
    first, second = house.running("a"), house.running("b")
    tables = first.create("main.orders", rows(0, 10)), first.create("main.payments", rows(0, 10))
    second.append(tables[0], rows(10, 3), ("silt/shop/model.shop.orders/b/main", 1))
    second.append(tables[0], rows(13, 2), ("silt/shop/model.shop.orders/b/dev:x/post_hook/abc/1", 1))
    second.append(tables[1], rows(10, 5), ("silt/shop/model.shop.payments/b/main", 1))
    second.create("main.made", rows(0, 1))
    return tables


def count(log: DeltaLog) -> int:
    """Returns the number of rows of the table, as another engine reads them."""
    return DeltaTable(log.store.root).to_pyarrow_table().num_rows


def test_the_tables_are_restored_and_the_command_prints_its_changes_and_the_next_step(house: House, silt: Silt) -> None:
    orders, payments = two_runs(house)
    printed = silt("rollback", "b").splitlines()
    assert printed[0] == "run b: rolled back"
    assert [line.split() for line in printed[1:4]] == [
        ["table", "from", "version", "to", "version", "new", "version", "rows", "discarded", "commits"],
        ["silt.main.orders", "2", "0", "3", "10", "0"],
        ["silt.main.payments", "1", "0", "2", "10", "0"],
    ]
    assert "Created by the run, and not dropped: silt.main.made" in printed
    assert printed[-1] == (
        "To run all of it again, drop the tables that it created, `silt rollback b --drop-created`, "
        "then type `--vars 'silt_run_id: b'`"
    )
    assert (count(orders), count(payments)) == (10, 10)
    assert orders.snapshot().transaction_version("silt/shop/model.shop.orders/b/main") == -1


def test_a_second_rollback_has_nothing_to_do(house: House, silt: Silt, as_json: AsJson) -> None:
    two_runs(house)
    silt("rollback", "b")
    assert as_json("rollback", "b") == {
        "run_id": "b",
        "dry_run": False,
        "refused": False,
        "tables": [],
        "dropped": [],
        "kept": ["silt.main.made"],
        "excluded": [],
        "not_found": [],
        "command": None,
    }
    assert silt("rollback", "b").startswith(
        "nothing to roll back: the tables that run b changed are as they were before it\n"
    )


class _Terminal(io.StringIO):
    """Input that a person types."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("typed", ["", "\n", "no\n"])
def test_the_command_asks_a_person_who_may_decline(
    house: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str
) -> None:
    orders, _ = two_runs(house)
    monkeypatch.setattr(sys, "stdin", _Terminal(typed))
    assert main(["rollback", "b", "--warehouse", str(house.folder)]) == 1
    out, err = capsys.readouterr()
    assert "run b: would be rolled back" in out
    assert "Roll back? [y/N]" in err
    assert "nothing was changed" in err
    assert orders.snapshot().version == 2


@pytest.mark.parametrize(("typed", "options"), [("y\n", []), ("no\n", ["--yes"]), ("no\n", ["--json"])])
def test_a_confirmed_rollback_and_a_rollback_in_a_script_are_done(
    house: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, options: list[str]
) -> None:
    orders, _ = two_runs(house)
    monkeypatch.setattr(sys, "stdin", _Terminal(typed))
    assert main(["rollback", "b", "--warehouse", str(house.folder), *options]) == 0
    assert ("[y/N]" in capsys.readouterr().err) == (not options)
    assert orders.snapshot().version == 3
    assert main(["rollback", "b", "--warehouse", str(house.folder)]) == 0
    assert "[y/N]" not in capsys.readouterr().err, "there is nothing to ask about"


def test_a_dry_run_changes_nothing(house: House, as_json: AsJson) -> None:
    orders, _ = two_runs(house)
    found = as_json("rollback", "b", "--dry-run", "--drop-created")
    assert [(each["table"], each["to_version"], each["version"]) for each in found["tables"]] == [
        ("silt.main.orders", 0, None),
        ("silt.main.payments", 0, None),
    ]
    assert found["dropped"] == ["silt.main.made"]
    assert orders.snapshot().version == 2
    assert (house.folder / "main" / "made").exists()


def test_tables_that_the_run_created_are_dropped_on_request(house: House, as_json: AsJson) -> None:
    two_runs(house)
    assert as_json("rollback", "b", "--drop-created")["dropped"] == ["silt.main.made"]
    assert not (house.folder / "main" / "made").exists()


def test_a_rollback_is_refused_with_the_list_of_later_changes(
    house: House, as_json: AsJson, capsys: pytest.CaptureFixture[str]
) -> None:
    orders, payments = two_runs(house)
    house.running("c", "model.shop.later").append(orders, rows(20, 1))
    house.append(payments, rows(20, 1))
    refused = as_json("rollback", "b", code=1)
    assert refused["refused"]
    assert [(each["table"], each["version"], each["operation"]) for each in refused["later_commits"]] == [
        ("silt.main.orders", 3, "WRITE"),
        ("silt.main.payments", 2, "WRITE"),
    ]
    assert refused["later_commits"][0]["author"] == "run c (model.shop.later)"
    assert refused["later_commits"][1]["author"].startswith("dbt-silt/")
    assert (orders.snapshot().version, payments.snapshot().version) == (3, 2)
    main(["rollback", "b", "--warehouse", str(house.folder)])
    assert "silt.main.orders@v3: WRITE by run c (model.shop.later), 20" in capsys.readouterr().err


def test_later_changes_are_undone_too_on_request(house: House, as_json: AsJson) -> None:
    orders, _ = two_runs(house)
    house.running("c").append(orders, rows(20, 1))
    done = as_json("rollback", "b", "--discard-later-commits")
    assert [each["author"] for each in done["tables"][0]["discarded_commits"]] == ["run c (model.shop.orders)"]
    assert count(orders) == 10


def test_a_table_can_be_excluded(house: House, as_json: AsJson) -> None:
    orders, payments = two_runs(house)
    house.append(orders, rows(20, 1))
    assert as_json("rollback", "--exclude", "main.orders", "b")["excluded"] == ["silt.main.orders"]
    assert (count(orders), count(payments)) == (16, 10)


def test_excluding_a_missing_table_is_an_error(house: House, silt: Silt) -> None:
    orders, _ = two_runs(house)
    silt("rollback", "b", "--exclude", "main.order", code=2)
    assert orders.snapshot().version == 2


def test_an_unknown_run_is_an_error(house: House, silt: Silt) -> None:
    two_runs(house)
    silt("rollback", "zzz", code=2)


def test_a_rollback_is_not_work_of_the_run_and_a_rerun_can_be_rolled_back_again(house: House, as_json: AsJson) -> None:
    orders, _ = two_runs(house)
    as_json("rollback", "b")
    house.running("b").append(orders, rows(10, 3), ("silt/shop/model.shop.orders/b/main", 1))
    (done,) = as_json("rollback", "b")["tables"]
    assert (done["table"], done["from_version"], done["to_version"], done["version"]) == ("silt.main.orders", 4, 3, 5)
    assert count(orders) == 10


def test_runs_are_undone_one_after_the_other_from_the_newest(house: House, as_json: AsJson) -> None:
    orders, _ = two_runs(house)
    house.running("c").append(orders, rows(20, 1))
    as_json("rollback", "b", code=1)
    as_json("rollback", "c")
    as_json("rollback", "b")
    assert count(orders) == 10


def test_a_running_run_is_not_rolled_back(house: House, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    orders, _ = two_runs(house)
    registry = RunRegistry(tmp_path)
    registry.enter(RunEntry("i", "b", "dbt run", os.getcwd(), "2026-03-01T00:00:00+00:00"))
    arguments = ["rollback", "b", "--warehouse", str(house.folder), "--target-path", str(tmp_path)]
    assert main(arguments) == 2
    assert "run b is still running: `dbt run`, since 2026-03-01" in capsys.readouterr().err
    assert orders.snapshot().version == 2
    registry.end("i", finished=True)
    assert main([*arguments, "--drop-created"]) == 0
    assert "The run can be run again: `dbt run --vars '{silt_run_id: b}'`" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "left"),
    [
        ([], True),
        (["--drop-created"], False),
        (["--drop-created", "--dry-run"], True),
        (["--drop-created", "--exclude", "main.orders"], True),
    ],
)
def test_a_completely_undone_run_is_no_longer_unfinished(
    house: House, tmp_path: Path, option: list[str], left: bool
) -> None:
    two_runs(house)
    registry = RunRegistry(tmp_path)
    for run_id in ("a", "b"):
        registry.enter(RunEntry(f"of {run_id}", run_id, "dbt run", os.getcwd(), "2026-03-01T00:00:00+00:00"))
        registry.end(f"of {run_id}", finished=False)
    arguments = ["rollback", "b", "--warehouse", str(house.folder), "--target-path", str(tmp_path), *option]
    assert main(arguments) == 0
    assert [each.is_unfinished for each in registry.entries()] == [True, left]


def test_tables_of_the_run_that_are_missing_now_are_named(house: House, tmp_path: Path, as_json: AsJson) -> None:
    two_runs(house)
    for table in ("silt.main.orders", "silt.main.gone", "silt.main.gone__dbt_tmp", "delta.`/elsewhere`"):
        CommitJournal(tmp_path).append(JournalEntry("2026-03-01T00:00:00Z", table, run_id="b", operation="WRITE"))
    found = as_json("rollback", "b", "--target-path", str(tmp_path))
    assert found["not_found"] == ["delta.`/elsewhere`", "silt.main.gone"]


@pytest.mark.parametrize(
    ("app_id", "run_id"),
    [
        ("silt/shop/model.shop.orders/b/main", "b"),
        ("silt/shop/model.shop.orders/a%2Fb%25/2026-01-01@2026-01-02/main", "a/b%"),
        ("silt/shop/shop/b/dev/on-run-end/abc/1", "b"),
        ("silt/shop/model.shop.orders/b", None),
        ("job/shop/model.shop.orders/b/main", None),
        ("backfill", None),
    ],
)
def test_the_run_of_a_unit_of_work_is_read_from_its_name(app_id: str, run_id: str | None) -> None:
    assert run_id_of(app_id) == run_id


def test_the_run_id_may_be_abbreviated(house: House, silt: Silt, as_json: AsJson) -> None:
    made = house.running("night-2026-03-01").create("main.orders", rows(0, 10))
    house.running("night-2026-03-02").append(made, rows(10, 5))
    silt("rollback", "night", code=2)
    assert (count(made), made.snapshot().version) == (15, 1)
    assert silt("rollback", "night-2026-03-02", "--dry-run").startswith("run night-2026-03-02: would be rolled back")
    silt("rollback", "night-2026-03-02")
    house.running("daytime").append(made, rows(20, 5))
    for command in ("rollback", "run", "drop-run"):
        silt(command, "day", code=2)
    assert count(made) == 15
    assert as_json("rollback", "dayt")["run_id"] == "daytime"
    assert count(made) == 10


def test_an_unknown_run_is_an_error_that_names_the_similar_run(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    house.running("tuesday").create("main.orders", rows(0, 10))
    for command in ("rollback", "run"):
        assert main([command, "tuesdy", "--warehouse", str(house.folder)]) == 2
    assert capsys.readouterr().err.count("Did you mean `tuesday`? `silt runs` shows all runs.") == 2

"""`silt upkeep --dry-run` and `silt why --upkeep`: what upkeep would do, from logs alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.silt.cli.main import main
from dbt.adapters.silt.records.journal import CommitJournal, JournalEntry
from dbt.adapters.silt.records.run_registry import RunEntry, RunRegistry
from tests.unit.cli.house import House, rows

AsJson = Callable[..., Any]
NOW = "2026-03-01T00:00:00+00:00"


@pytest.fixture
def shop(house: House) -> House:
    """Orders of many small files and marked rows, items of two files, and a table that must not be compacted."""
    orders = house.create("main.orders", rows(0, 10), {"delta.enableDeletionVectors": "true"})
    for number in range(1, 6):
        house.append(orders, rows(10 * number, 10))
    house.mark(orders, [1, 2, 3])
    house.append(house.create("main.items", rows(0, 10)), rows(10, 10))
    fixed = house.create("main.fixed", rows(0, 10), {"delta.autoOptimize.autoCompact": "false"})
    for number in range(1, 6):
        house.append(fixed, rows(10 * number, 10))
    return house


def test_each_table_is_explained(shop: House, as_json: AsJson) -> None:
    found = {each["table"]: each for each in as_json("upkeep", "--dry-run")["tables"]}
    orders = found["silt.main.orders"]
    assert (orders["files"], orders["small_files"], orders["bins"], orders["waits"]) == (6, 6, 1, None)
    assert round(orders["marked"], 2) == 0.05 and orders["score"] > 100
    assert (found["silt.main.items"]["bins"], found["silt.main.items"]["score"]) == (0, None)
    assert found["silt.main.fixed"]["waits"] == "its property `delta.autoOptimize.autoCompact` is false"
    assert found["silt.main.fixed"]["bins"] == 0


def test_nothing_is_changed(shop: House, silt: Callable[..., str]) -> None:
    names = ("main.orders", "main.items", "main.fixed")
    before = [shop.catalog.table(shop.name(name)).snapshot().version for name in names]
    assert "1 table would be compacted" in silt("upkeep", "--dry-run", "--budget", "5 minutes")
    assert [shop.catalog.table(shop.name(name)).snapshot().version for name in names] == before


def test_why_gives_the_same_answer_for_the_chosen_tables(shop: House, as_json: AsJson) -> None:
    chosen = as_json("why", "--upkeep", "orders")
    assert [each["table"] for each in chosen["tables"]] == ["silt.main.orders"]
    assert chosen == as_json("upkeep", "--dry-run", "--select", "orders")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["upkeep"], "an upkeep needs a budget"),
        (["upkeep", "--budget", "0 minutes"], "cannot be `0 minutes`"),
        (["upkeep", "--budget", "abc"], "cannot be `abc`"),
        (["upkeep", "--budget", "-5 minutes"], "cannot be `-5 minutes`"),
        (["upkeep", "--dry-run", "--select", "missing"], "the table or view does not exist"),
        (["why"], "no node is named"),
    ],
)
def test_a_bad_request_is_refused(
    shop: House, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([*arguments, "--warehouse", str(shop.folder)])
    assert code == 2 and said in capsys.readouterr().err


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Path]:
    """A project whose running command has selected the node of `orders`."""
    folder = tmp_path / "target"
    folder.mkdir()
    CommitJournal(folder).append(JournalEntry(NOW, "silt.main.orders", node_id="model.shop.orders"))
    entry = RunEntry("one", "run", "dbt build", ".", NOW, "build", selected=frozenset(("model.shop.orders",)))
    registry = RunRegistry(folder)
    registry.enter(entry)
    yield folder
    registry.end("one", finished=True)


def test_a_table_that_a_running_command_writes_waits(shop: House, target: Path, as_json: AsJson) -> None:
    found = as_json("upkeep", "--dry-run", "--target-path", str(target))["tables"]
    assert {each["table"]: each["waits"] for each in found}["silt.main.orders"] == "a running command uses it"


def test_a_table_of_another_engines_features_waits(shop: House, as_json: AsJson) -> None:
    log = shop.catalog.table(shop.name("main.orders"))
    path = Path(log.store.root, "_delta_log", "00000000000000000000.json")
    path.write_text(path.read_text().replace('"deletionVectors"]', '"deletionVectors","fromTheFuture"]'))
    (found,) = as_json("upkeep", "--dry-run", "--select", "orders")["tables"]
    assert "fromTheFuture" in found["waits"] and found["bins"] == 0

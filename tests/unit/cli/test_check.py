"""`silt check`: it finds every kind of damage, and never reports an intact table."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbt.adapters.silt.cli import check
from dbt.adapters.silt.cli.main import main
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER, checkpoint_path, checksum_path, commit_path
from tests.examples import examples
from tests.unit.cli.house import House, rows
from tests.unit.engine.kernel.log_builder import stated_at

AsJson = Callable[..., Any]
VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture
def orders(house: House) -> DeltaLog:
    """A table of fourteen versions with a checkpoint, many files, and rows deleted by a deletion vector."""
    log = house.create("main.orders", rows(0, 10), VECTORS)
    house.mark(log, [2, 7])
    for number in range(1, 13):
        house.append(log, rows(10 * number, 5))
    return log


def folder(log: DeltaLog) -> Path:
    return Path(log.store.root)


def commit_of(log: DeltaLog, version: int) -> Path:
    return folder(log) / commit_path(version)


def data_file(log: DeltaLog, number: int = -1) -> Path:
    return folder(log) / log.snapshot().files["path"].to_pylist()[number]


def edited(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes each action of a commit by `change`."""
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for action in actions:
        change(action)
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))


def stats_edited(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    def of_add(action: dict[str, Any]) -> None:
        if "add" in action:
            stats = json.loads(action["add"]["stats"])
            change(stats)
            action["add"]["stats"] = json.dumps(stats)

    return of_add


def without_checkpoints(log: DeltaLog) -> None:
    """Deletes checkpoints and checksums, so that later damage is not found through them."""
    for path in (folder(log) / LOG_FOLDER).iterdir():
        if "checkpoint" in path.name or path.suffix == ".crc":
            path.unlink()


def problems(as_json: AsJson, *arguments: str) -> list[tuple[str, str]]:
    document = as_json("check", *arguments, code=1)
    return [(each["kind"], each["what"]) for table in document["tables"] for each in table["problems"]]


def test_an_intact_warehouse_has_no_problems(orders: DeltaLog, house: House, as_json: AsJson) -> None:
    house.create("main.empty")
    document = as_json("check")
    assert document["problems"] == 0
    assert [(each["table"], each["version"], each["files"]) for each in document["tables"]] == [
        ("silt.main.empty", 0, 0),
        ("silt.main.orders", 13, 13),
    ]


def test_a_missing_file_is_found(orders: DeltaLog, as_json: AsJson) -> None:
    data_file(orders).unlink()
    ((kind, what),) = problems(as_json)
    assert kind == "file_missing"
    assert "is missing" in what


def test_a_file_of_another_size_is_found(orders: DeltaLog, as_json: AsJson) -> None:
    with open(data_file(orders), "ab") as file:
        file.write(b"more")
    assert [kind for kind, _ in problems(as_json, "main.orders")] == ["file_size_differs"]


def test_a_truncated_file_of_the_right_size_is_found(orders: DeltaLog, as_json: AsJson) -> None:
    path = data_file(orders)
    path.write_bytes(path.read_bytes()[:-100] + bytes(100))
    assert [kind for kind, _ in problems(as_json)] == ["file_unreadable"]


def test_a_wrong_number_of_rows_is_found(orders: DeltaLog, as_json: AsJson) -> None:
    without_checkpoints(orders)
    edited(commit_of(orders, 5), stats_edited(lambda stats: stats.update(numRecords=6)))
    ((kind, what),) = problems(as_json)
    assert kind == "statistics_differ"
    assert "has 5 rows, but its statistics say 6" in what


@pytest.mark.parametrize(
    ("statistic", "column", "value", "said"),
    [
        ("minValues", "id", 41, "`id` has a value below the minimum"),
        ("maxValues", "id", 43, "`id` has a value above the maximum"),
        ("minValues", "name", "name 41", "`name` has a value below the minimum"),
        ("maxValues", "name", "name 43", "`name` has a value above the maximum"),
        ("maxValues", "sold", "2024-01-01T00:00:43.000Z", "`sold` has a value above the maximum"),
        ("nullCount", "price", 4, "`price` is null in 5 rows, but the statistics say 4"),
        ("nullCount", "id", 5, "`id` is null in 0 rows, but the statistics say 5"),
    ],
)
def test_statistics_that_exclude_an_existing_value_are_found(
    orders: DeltaLog, as_json: AsJson, statistic: str, column: str, value: Any, said: str
) -> None:
    without_checkpoints(orders)
    edited(commit_of(orders, 5), stats_edited(lambda stats: stats[statistic].update({column: value})))
    ((kind, what),) = problems(as_json)
    assert kind == "statistics_differ"
    assert said in what


@pytest.mark.parametrize(("value", "found"), [(1, True), (0, False), (3, True)])
def test_the_bounds_of_a_file_with_a_deletion_vector_are_compared_with_the_remaining_rows(
    house: House, as_json: AsJson, value: int, found: bool
) -> None:
    log = house.create("main.orders", rows(0, 10), VECTORS)
    house.mark(log, [3, 9])
    without_checkpoints(log)
    edited(commit_of(log, 1), stats_edited(lambda stats: stats["minValues"].update(id=value)))
    assert as_json("check", code=int(found))["problems"] == int(found)


def test_bounds_that_exclude_only_deleted_rows_are_valid(house: House, as_json: AsJson) -> None:
    log = house.create("main.orders", rows(0, 10), VECTORS)
    house.mark(log, [0, 9])
    without_checkpoints(log)
    edited(commit_of(log, 1), stats_edited(lambda stats: stats["minValues"].update(id=1)))
    assert as_json("check")["problems"] == 0


def test_a_null_count_need_not_be_exact_if_the_statistics_have_wide_bounds(orders: DeltaLog, as_json: AsJson) -> None:
    without_checkpoints(orders)
    edited(
        commit_of(orders, 5),
        stats_edited(lambda stats: stats["nullCount"].update(price=4) or stats.update(tightBounds=False)),
    )
    assert as_json("check")["problems"] == 0


def test_a_missing_commit_is_found(orders: DeltaLog, as_json: AsJson) -> None:
    for version in (4, 5):
        commit_of(orders, version).unlink()
    ((kind, what),) = problems(as_json)
    assert kind == "commit_missing"
    assert what.endswith("00000000000000000004.json to 00000000000000000005.json are missing")


def test_a_missing_commit_without_a_later_checkpoint_is_reported_once(orders: DeltaLog, as_json: AsJson) -> None:
    commit_of(orders, 12).unlink()
    assert [kind for kind, _ in problems(as_json)] == ["commit_missing"]


def test_commits_removed_by_the_log_clean_up_are_not_reported_as_missing(house: House, as_json: AsJson) -> None:
    log = house.create("main.orders", rows(0, 1))
    for number in range(1, 23):
        house.append(log, rows(number, 1))
    for version in range(20):
        commit_of(log, version).unlink()
    assert (folder(log) / checkpoint_path(10)).exists()
    assert as_json("check")["problems"] == 0
    commit_of(log, 21).unlink()
    assert [kind for kind, _ in problems(as_json)] == ["commit_missing"]


def test_an_unreadable_commit_is_found(orders: DeltaLog, as_json: AsJson) -> None:
    commit_of(orders, 3).write_bytes(b'{"add":')
    ((kind, what),) = problems(as_json)
    assert kind == "commit_unreadable"
    assert "00000000000000000003.json" in what


def test_a_damaged_checkpoint_is_found(orders: DeltaLog, as_json: AsJson) -> None:
    path = folder(orders) / checkpoint_path(10)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    ((kind, what),) = problems(as_json)
    assert kind == "checkpoint_unreadable"
    assert "00000000000000000010.checkpoint.parquet" in what


def test_a_checkpoint_that_lacks_a_file_is_found(orders: DeltaLog, as_json: AsJson) -> None:
    path = folder(orders) / checkpoint_path(10)
    content = pq.read_table(path)
    other_rows = [index for index, add in enumerate(content["add"].to_pylist()) if add is None]
    adds = [index for index in range(content.num_rows) if index not in other_rows]
    pq.write_table(content.take(pa.array([*other_rows, *adds[1:]])), path)
    found = problems(as_json)
    assert [kind for kind, _ in found] == ["checkpoint_differs"]
    assert "it lacks part-" in found[0][1]


def test_a_version_checksum_of_another_state_is_found(orders: DeltaLog, as_json: AsJson) -> None:
    path = folder(orders) / checksum_path(13)
    path.write_text(json.dumps({**json.loads(path.read_text()), "numFiles": 12}))
    ((kind, what),) = problems(as_json)
    assert kind == "checksum_differs"
    assert "numFiles 12, but the log has 13" in what


@pytest.mark.parametrize("keep", [True, False], ids=["damaged", "missing"])
def test_an_unreadable_deletion_vector_is_found(orders: DeltaLog, as_json: AsJson, keep: bool) -> None:
    (vector,) = folder(orders).glob("deletion_vector_*.bin")
    if keep:
        vector.write_bytes(vector.read_bytes()[:-6] + bytes(6))
    else:
        vector.unlink()
    assert [kind for kind, _ in problems(as_json)] == ["deletion_vector_unreadable"]


def test_a_log_without_a_readable_start_is_found(orders: DeltaLog, as_json: AsJson) -> None:
    without_checkpoints(orders)
    commit_of(orders, 0).unlink()
    assert [kind for kind, _ in problems(as_json, str(folder(orders)))] == ["log_unreadable"]


def test_a_damaged_table_does_not_prevent_the_check_of_other_tables(
    house: House, orders: DeltaLog, as_json: AsJson
) -> None:
    house.create("main.zebra", rows(0, 1))
    commit_of(orders, 12).unlink()
    document = as_json("check", code=1)
    assert [(each["table"], len(each["problems"])) for each in document["tables"]] == [
        ("silt.main.orders", 1),
        ("silt.main.zebra", 0),
    ]


def test_a_table_with_an_unknown_feature_is_named_and_not_reported_as_intact(
    house: House, as_json: AsJson, silt: Callable[..., str]
) -> None:
    log = house.create()
    edited(commit_of(log, 0), lambda action: action.update(protocol={"minReaderVersion": 9, "minWriterVersion": 9})
           if "protocol" in action else None)  # fmt: skip
    (table,) = as_json("check")["tables"]
    assert (table["problems"], table["version"]) == ([], None)
    assert "reader version 9" in table["not_checked"]
    assert "0 tables checked" in silt("check")


def test_a_file_deleted_by_a_concurrent_vacuum_is_no_problem(
    house: House, orders: DeltaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = check.check_files  # type: ignore[attr-defined]

    def after_a_restore(*arguments: Any) -> Any:
        monkeypatch.setattr(check, "check_files", found)
        path = data_file(orders)
        house.restore(orders, 11)
        path.unlink()
        return found(*arguments)

    monkeypatch.setattr(check, "check_files", after_a_restore)
    assert check.check(orders, lambda done, total: None).problems == ()


def test_problems_are_printed_as_lines_for_people(orders: DeltaLog, silt: Callable[..., str]) -> None:
    data_file(orders).unlink()
    printed = silt("check", code=1)
    assert "silt.main.orders  file missing  the data file part-" in printed
    assert printed.endswith("1 problem\n")
    assert not any(character in printed for character in "─│┌\x1b")


def test_a_folder_that_is_not_a_table_is_invalid_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", f"{tmp_path}/"]) == 2
    assert "it is not a Delta table" in capsys.readouterr().err


@settings(max_examples=examples(12), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.sampled_from(["append", "mark", "restore"]), st.integers(0, 30)), min_size=1, max_size=12),
    st.lists(st.text(max_size=50), min_size=1, max_size=4),
    st.booleans(),
)
def test_an_intact_table_is_never_reported(
    tmp_path: Path, steps: list[tuple[str, int]], names: list[str], has_row_ids: bool
) -> None:
    shutil.rmtree(tmp_path / "house", ignore_errors=True)
    house = House(tmp_path / "house")
    content = [{**row, "name": names[row["id"] % len(names)].encode(errors="replace").decode()} for row in rows(0, 9)]
    log = house.create("main.t", content, VECTORS | ({"delta.enableRowTracking": "true"} if has_row_ids else {}))
    for kind, number in steps:
        snapshot = log.snapshot()
        if kind == "append":
            house.append(log, rows(number, number + 2), (f"app {number}", snapshot.version))
        elif kind == "restore":
            house.restore(log, number % (snapshot.version + 1))
        elif snapshot.files["deletion_vector"].slice(0, 1).null_count:
            house.mark(log, [number % 2])
    found = check.check(log, lambda done, total: None, data=True)
    assert found.problems == ()
    assert found.snapshot is not None and found.snapshot.version == log.snapshot().version


def test_a_page_with_a_flipped_byte_is_found_if_the_data_is_read(
    house: House, as_json: AsJson, silt: Callable[..., str]
) -> None:
    log = house.create("main.orders", rows(0, 1000))
    path = data_file(log, 0)
    pq.write_table(pq.read_table(path), path, write_page_checksum=True, compression="none")
    body = bytearray(path.read_bytes())
    body[body.index(b"name 500")] ^= 1
    path.write_bytes(bytes(body))
    edited(commit_of(log, 0), lambda action: action["add"].update(size=len(body)) if "add" in action else None)
    without_checkpoints(log)
    assert silt("check").endswith("no problem in logs and footers (--data also reads the rows)\n")
    ((kind, what),) = problems(as_json, "--data")
    assert kind == "file_unreadable" and "CRC checksum verification failed" in what


def test_values_outside_of_the_statistics_are_found_if_the_data_is_read(
    orders: DeltaLog, as_json: AsJson, silt: Callable[..., str]
) -> None:
    assert silt("check", "--data").endswith(": no problem\n")
    document = as_json("check", "--data")
    assert (document["data_read"], document["not_checked"]) == (True, 0)


def test_a_file_with_the_columns_of_another_table_is_found(orders: DeltaLog, as_json: AsJson) -> None:
    path = data_file(orders)
    path.write_bytes(path.read_bytes().replace(b"name", b"nome"))
    ((kind, what),) = problems(as_json)
    assert kind == "statistics_differ" and "lacks `name`" in what


def test_every_checksum_is_compared_including_those_of_lost_versions(orders: DeltaLog, as_json: AsJson) -> None:
    path = folder(orders) / checksum_path(4)
    path.write_text(json.dumps({**json.loads(path.read_text()), "numFiles": 12}))
    commit_of(orders, 13).unlink()
    commit_of(orders, 12).unlink()
    found = as_json("check", code=1)["tables"][0]["problems"]
    assert [(each["kind"], each["version"]) for each in found] == [("checksum_differs", 4), ("commit_missing", 12)]
    assert "00000000000000000012.json to 00000000000000000013.json are missing" in found[1]["what"]


@pytest.mark.parametrize("name", ["00000000000000000014.json", "_last_checkpoint"])
def test_a_folder_with_the_name_of_a_log_file_is_found(orders: DeltaLog, as_json: AsJson, name: str) -> None:
    path = folder(orders) / LOG_FOLDER / name
    path.unlink(missing_ok=True)
    path.mkdir()
    ((kind, what),) = problems(as_json)
    assert kind == "name_taken" and name in what and "move it away" in what


def test_tables_that_are_not_checked_are_not_reported_as_intact(house: House, silt: Callable[..., str]) -> None:
    log = house.create()
    edited(commit_of(log, 0), lambda action: action.update(protocol={"minReaderVersion": 9, "minWriterVersion": 9})
           if "protocol" in action else None)  # fmt: skip
    assert silt("check").endswith("nothing was checked; 1 table not checked\n")


def test_files_outside_of_the_warehouse_are_listed_and_not_opened(
    house: House, orders: DeltaLog, as_json: AsJson
) -> None:
    path = data_file(orders)
    elsewhere = folder(orders).parents[2] / path.name
    path.rename(elsewhere)
    without_checkpoints(orders)
    edited(commit_of(orders, 13), lambda action: action["add"].update(path=str(elsewhere)) if "add" in action else None)
    (table,) = as_json("check")["tables"]
    assert table["note"] == f"1 file in its log is outside of the warehouse, and not checked: {elsewhere}"
    assert table["problems"] == []


def test_versions_in_the_future_are_listed_and_are_no_damage(
    orders: DeltaLog, as_json: AsJson, silt: Callable[..., str]
) -> None:
    ahead = int(commit_of(orders, 9).stat().st_mtime) + 86_400
    for version in range(10, 14):
        stated_at(commit_of(orders, version), (ahead + version) * 1000)
    (table,) = as_json("check")["tables"]
    assert table["note"].startswith("versions 10 to 13 have times in the future")
    assert "`timestamp as of` returns version 9" in table["note"]
    assert "(a clock ran ahead)" in silt("check") and "(a clock ran ahead)" in silt("history", "main.orders")
    assert as_json("history", "main.orders")["note"] == table["note"]

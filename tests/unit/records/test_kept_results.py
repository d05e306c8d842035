"""The results of a project's last commands, kept for their timelines."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dbt.adapters.silt.records.command_result import COMMANDS, FOLDER, KeptResults


def test_only_the_fields_of_a_timeline_are_kept(tmp_path: Path) -> None:
    response = {"run_id": "R1", "table": "silt.main.orders", "table_version": 3, "skipped": False, "code": "secret"}
    result = {"unique_id": "model.shop.orders", "status": "success", "message": "ok", "compiled_code": "secret"}
    KeptResults(tmp_path).keep("I1", "build", [{**result, "adapter_response": response, "timing": []}])
    kept = KeptResults(tmp_path).of("I1")
    assert kept is not None and "secret" not in str(kept)
    assert kept["results"][0]["adapter_response"] == {name: each for name, each in response.items() if name != "code"}


def test_kept_results_are_bounded_and_begin_with_the_failures(tmp_path: Path) -> None:
    kept = KeptResults(tmp_path)
    results = [{"unique_id": f"m{number}", "status": "success", "message": "x" * 5_000} for number in range(5_000)]
    kept.keep("I1", "build", [*results, {"unique_id": "late", "status": "error"}])
    found = kept.of("I1")
    assert found is not None and found["results"][0]["unique_id"] == "late" and len(found["results"]) == 2_000
    assert len(found["results"][1]["message"]) == 1_000


def test_the_results_of_the_oldest_commands_are_deleted(tmp_path: Path) -> None:
    kept = KeptResults(tmp_path)
    for number in range(COMMANDS + 2):
        kept.keep(f"I{number}", "run", ())
        os.utime(tmp_path / FOLDER / f"I{number}.json", (number, number))
    kept.keep("last", "run", ())
    assert (kept.of("I2"), kept.of("last") is not None) == (None, True)
    assert len(list((tmp_path / FOLDER).iterdir())) == COMMANDS


@pytest.mark.parametrize("content", ["{", "[1]", ""])
def test_damaged_results_are_read_as_none(tmp_path: Path, content: str) -> None:
    KeptResults(tmp_path).keep("I1", "run", ())
    (tmp_path / FOLDER / "I1.json").write_text(content)
    assert KeptResults(tmp_path).of("I1") is None


def test_an_id_that_is_a_path_finds_no_file(tmp_path: Path) -> None:
    (tmp_path / "outside.json").write_text("{}")
    assert KeptResults(tmp_path).of("../outside") is None

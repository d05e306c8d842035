"""The benchmark of enforced keys runs, and reports each layout with and without the key."""

from __future__ import annotations

import pytest

from benchmarks.enforced_keys.__main__ import main

TABLES = ("plain", "key", "key_child")


def test_each_layout_and_order_is_measured_with_and_without_the_key(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--rows", "400", "--appended", "20", "--files", "4"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if " s of processor time" in line] == [
        f"{layout}_{table}" for layout in ("clustered", "scattered") for table in TABLES for _ in range(2)
    ]

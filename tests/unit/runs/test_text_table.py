"""The result of an operation as a table in a terminal."""

from __future__ import annotations

import agate

from dbt.adapters.silt.runs.text_table import text_table


def lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.strip("─ ")]


def test_rows_are_shown_below_the_names_of_their_columns() -> None:
    rows = agate.Table([[1, "[bold]WRITE[/]"], [2, None]], ["version", "operation"])
    assert lines(text_table(rows)) == [["version", "operation"], ["1", "[bold]WRITE[/]"], ["2"]]


def test_a_single_row_is_shown_field_by_field() -> None:
    metrics = '{"numFilesAdded": 1, "filesAdded": {"min": null, "max": 7}}'
    rows = agate.Table([["/a/b", metrics, "{torn"]], ["path", "metrics", "note"])
    assert lines(text_table(rows)) == [
        ["path", "/a/b"],
        ["metrics.numFilesAdded", "1"],
        ["metrics.filesAdded.min"],
        ["metrics.filesAdded.max", "7"],
        ["note", "{torn"],
    ]


def test_long_values_are_wrapped_and_not_truncated() -> None:
    long = "x" * 500
    text = text_table(agate.Table([[1, long], [2, long]], ["a", "b"]))
    assert text.count("x") == 1000


def test_a_table_without_rows_shows_its_column_names() -> None:
    assert lines(text_table(agate.Table([], ["path", "length"], [agate.Text(), agate.Number()]))) == [
        ["path", "length"]
    ]

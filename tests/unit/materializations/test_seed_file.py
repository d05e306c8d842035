"""A seed's file is read with exactly the values and types that dbt reads, in any notation of values."""

from __future__ import annotations

import csv
import gc
import warnings
from pathlib import Path
from typing import Any

import agate
import pytest
from dbt_common.clients import agate_helper
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbt.adapters.silt.materializations.seeds import read_table
from tests.examples import examples

NULLS = st.sampled_from(["", "null", "NULL", " ", "none", "n/a"])
DAYS = st.dates().map(str) | st.sampled_from(["2023-02-29", "0000-01-01", "2024-1-1", "20240101", " 2024-01-01"])
TIMES = st.datetimes().map(lambda moment: moment.isoformat(" ", "seconds")) | st.sampled_from(
    ["2024-01-01 24:00:00", "2024-01-01 00:00:60", "2024-01-01 9:00:00", "2024-01-01 10:00:00.5"]
)
ISO_TIMES = st.builds(
    lambda moment, digits, zone: moment.isoformat("T", digits) + zone,
    st.datetimes(),
    st.sampled_from(["seconds", "milliseconds", "microseconds", "minutes"]),
    st.sampled_from(["", "", "Z", "+02:00", "-0330", "z"]),
) | st.sampled_from(["2024-01-01T24:00:00", "2024-01-01T10:00:00.12", "2024-02-30T10:00:00Z", "2024-W01-1T10"])
NUMBERS = (
    st.integers().map(str)
    | st.decimals(allow_nan=True).map(str)
    | st.floats().map(repr)
    | st.sampled_from(["007", "-0", "-0.00", "1,234.5", "$5", "12%", "+1", "1_0", ".5", "5.", "1e3", "٣", "- 1", "--1"])
)
BOOLEANS = st.sampled_from(["true", "FALSE", "True", "t", "yes", "0", "1"])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(['say "q"', "a,b", "日本 🎉"])
KINDS = (DAYS, TIMES, ISO_TIMES, NUMBERS, BOOLEANS, TEXTS)
COLUMNS = [st.lists(kind | NULLS if has_nulls else kind, max_size=8) for kind in KINDS for has_nulls in (0, 1)]
ANY_COLUMN = st.one_of(*COLUMNS, st.lists(st.one_of(*KINDS), max_size=8))


def written(folder: Path, lines: list[list[str]]) -> Path:
    file = folder / "seed.csv"
    with file.open("w", encoding="utf-8", newline="") as opened:
        csv.writer(opened).writerows(lines)
    return file


def content(table: agate.Table) -> list[Any]:
    """Returns the content of a table as dbt sees it; `repr` distinguishes equal values such as 1.50 and 1.5."""
    kinds = [(type(kind), kind.null_values) for kind in table.column_types]
    rows = [[repr(value) for value in row.values()] for row in table.rows]
    columns = [[repr(value) for value in column.values()] for column in table.columns]
    return [table.column_names, [column.name for column in table.columns], kinds, rows, columns]


def as_dbt(file: Path, text_columns: list[str], delimiter: str = ",") -> list[Any]:
    return content(agate_helper.from_csv(file, text_columns, delimiter=delimiter))


def as_we(file: Path, text_columns: list[str], delimiter: str = ",") -> list[Any]:
    table = read_table(file, text_columns, delimiter)
    assert table is not None
    return content(table)


@settings(max_examples=examples(600), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(columns=st.lists(ANY_COLUMN, min_size=1, max_size=4), is_text=st.booleans())
def test_any_file_is_read_as_dbt_reads_it(tmp_path: Path, columns: list[list[str]], is_text: bool) -> None:
    names = [f"c{number}" for number in range(len(columns))]
    rows = [list(row) for row in zip(*columns, strict=False)]
    file = written(tmp_path, [names, *rows])
    text_columns = ["c0"] if is_text else []
    assert as_we(file, text_columns) == as_dbt(file, text_columns)


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1\n2,3\n",
        "a,b\n1,2\n\n3,4\n",
        "a\n\n1\n",
        "\ufeffa,b\n1,2\n",
        'a,b\n"two\nlines","x\r\ny"\n',
        "a,b\r\n1,2\r\n",
        "a,b\n",
        "a,b",
        "a\n \nnull\n",
        'a\n""\n',
    ],
)
def test_files_with_unusual_lines_are_read_as_dbt_reads_them(tmp_path: Path, text: str) -> None:
    file = tmp_path / "seed.csv"
    file.write_bytes(text.encode())
    assert as_we(file, []) == as_dbt(file, [])


def test_duplicate_names_are_changed_as_in_dbt(tmp_path: Path) -> None:
    file = written(tmp_path, [["a", "a", "", "b"], ["1", "x", "2", "007"]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = as_dbt(file, ["a_2", "b", "no such column"])
    with warnings.catch_warnings(record=True) as of_us:
        warnings.simplefilter("always")
        found = as_we(file, ["a_2", "b", "no such column"])
    assert found == expected
    assert not of_us


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [("a\n1,2\n", ","), ("\n1\n", ","), ("a\n1\n", ""), ("a\n" + "x" * 200_000, ","), ("", ","), ("a\n\0\n", ",,")],
)
def test_an_invalid_file_is_left_to_dbts_reader(tmp_path: Path, text: str, delimiter: str) -> None:
    file = tmp_path / "seed.csv"
    file.write_text(text, encoding="utf-8")
    assert read_table(file, [], delimiter) is None
    assert read_table(tmp_path / "missing.csv", [], ",") is None
    (tmp_path / "latin.csv").write_bytes("a\nü\n".encode("latin-1"))
    assert read_table(tmp_path / "latin.csv", [], ",") is None
    assert gc.isenabled()


def test_another_delimiter_is_read_as_dbt_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "seed.csv"
    file.write_text('a;b\n1;"x;y"\n2;1,5\n', encoding="utf-8")
    assert as_we(file, [], ";") == as_dbt(file, [], ";")

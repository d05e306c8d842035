"""The figures that the documentation shows."""

from __future__ import annotations

from dbt.adapters.silt.docs import count_rows
from dbt.adapters.silt.engine.kernel.actions import AddFile, DeletionVector
from dbt.adapters.silt.engine.kernel.columns import files_table


def file(name: str, stats: str | None, hidden: int = 0) -> AddFile:
    vector = DeletionVector("i", "x", 1, hidden) if hidden else None
    return AddFile(name, {}, 1, 0, stats=stats, deletion_vector=vector)


def test_rows_are_counted_from_the_files_statistics() -> None:
    files = [file("a", '{"numRecords":10,"minValues":{}}'), file("b", '{"minValues":{}, "numRecords" : 5}')]
    assert count_rows(files_table(files)) == 15


def test_rows_that_a_deletion_vector_hides_are_not_counted() -> None:
    assert count_rows(files_table([file("a", '{"numRecords":10}', hidden=4)])) == 6


def test_a_file_without_statistics_leaves_the_number_unknown() -> None:
    assert count_rows(files_table([file("a", '{"numRecords":10}'), file("b", None)])) is None


def test_an_empty_table_has_no_rows() -> None:
    assert count_rows(files_table([])) == 0

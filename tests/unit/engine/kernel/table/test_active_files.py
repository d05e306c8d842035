"""The keys of logical files, and files without some of them."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dbt.adapters.silt.engine.kernel.table import active_files
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.kernel.table.paths import encode_path

NAMES = st.text(st.sampled_from("ab/ %é=:"), min_size=1, max_size=12)


def files(*names: str) -> list[AddFile]:
    return [AddFile(encode_path(name), {}, 1, 0) for name in names]


@settings(deadline=None)
@given(NAMES, NAMES, st.integers(0, 80))
@example("day=a b/", "c", 60)
def test_a_removed_file_is_excluded_in_every_quoting_of_its_path(folder: str, other: str, length: int) -> None:
    """The position of the quoted character makes no difference."""
    name, remaining = f"{folder}{'x' * length}", f"{other}{'y' * (length + 1)}"
    table = active_files.files_table(files(name, remaining))
    key = active_files.file_key(encode_path(name), None)
    assert active_files.without(table, [key])["path"].to_pylist() == [encode_path(remaining)]


@pytest.mark.parametrize("length", range(50, 80))
def test_an_absolute_path_is_the_same_with_and_without_its_scheme(length: int) -> None:
    name = "/" + "x" * length
    table = active_files.files_table([AddFile(f"file://{name}", {}, 1, 0)])
    assert active_files.without(table, [active_files.file_key(name, None)]).num_rows == 0


def test_keys_are_the_same_in_every_chunking_of_the_rows() -> None:
    first, second = active_files.files_table(files("a b", "c")), active_files.files_table(files("%"))
    both = active_files.appended(first, second)
    assert active_files.keys_of(both).to_pylist() == ["a b", "c", "%"]
    assert active_files.keys_of(both.combine_chunks()).to_pylist() == ["a b", "c", "%"]

"""Private folders of the current user."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.kernel import owned_folders


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_every_new_folder_is_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    tmp_path.chmod(0o755)
    before = os.umask(umask)
    try:
        for _ in range(2):
            owned_folders.create(str(tmp_path / "a" / "b" / "c"))
    finally:
        os.umask(before)
    made = [tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"]
    assert [stat.S_IMODE(each.stat().st_mode) for each in (tmp_path, *made)] == [0o755, 0o700, 0o700, 0o700]
    assert all(owned_folders.problem(str(each)) is None for each in made)


def test_a_file_at_the_path_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    for path in (tmp_path / "a", tmp_path / "a" / "b"):
        with pytest.raises((FileExistsError, NotADirectoryError)):
            owned_folders.create(str(path))

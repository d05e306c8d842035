"""Files that contain a token: only this user may access them, or they are refused."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.kernel.errors import KeptSparkError
from dbt.adapters.silt.kept_spark import private_files
from dbt.adapters.silt.kept_spark.leases import Record
from dbt.adapters.silt.kept_spark.private_files import acquire
from tests.unit.kept_spark.house import record


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_this_user_may_access_a_folder_and_its_files_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        folder = private_files.private_folder(tmp_path / ".cache" / "dbt-silt" / "spark")
        record().write(folder / "spark.json")
        lock = acquire(folder / "gate.lock")
    finally:
        os.umask(before)
    assert lock is not None
    lock.release()
    assert {mode(each) for each in (folder, folder.parent, folder.parent.parent)} == {0o700}
    assert mode(folder / "spark.json") == 0o600
    assert mode(folder / "gate.lock") == 0o600


def test_an_own_folder_that_other_users_may_read_is_made_private(tmp_path: Path) -> None:
    folder = tmp_path / "spark"
    folder.mkdir(mode=0o755)
    private_files.private_folder(folder)
    assert mode(folder) == 0o700


@pytest.mark.parametrize("kind", ["of another user", "a link", "a file"])
def test_a_folder_that_another_user_may_control_is_refused(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "spark"
    if kind == "of another user":
        folder.mkdir()
        monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    elif kind == "a link":
        (tmp_path / "elsewhere").mkdir()
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.write_text("")
    with pytest.raises(KeptSparkError):
        private_files.private_folder(folder)


@pytest.mark.parametrize("kind", ["of another user", "a link", "for others to read", "for others to write", "a pipe"])
def test_a_file_that_another_user_may_control_is_not_read(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "spark.json"
    record().write(path)
    if kind == "of another user":
        monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    elif kind == "a link":
        os.rename(path, tmp_path / "target")
        path.symlink_to(tmp_path / "target")
    elif kind == "a pipe":
        path.unlink()
        os.mkfifo(path, 0o600)
    else:
        path.chmod(0o640 if kind == "for others to read" else 0o620)
    with pytest.raises(KeptSparkError, match="not a regular file that only you can access"):
        Record.read(path)


def test_a_record_is_read_as_written_and_its_repr_has_no_token(tmp_path: Path) -> None:
    record().write(tmp_path / "spark.json")
    assert Record.read(tmp_path / "spark.json") == record()
    assert "secret-token" not in repr(record())


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"port": 1}', b"\xff"])
def test_a_broken_or_missing_record_is_read_as_none(tmp_path: Path, content: bytes) -> None:
    private_files.write(tmp_path / "spark.json", content)
    assert Record.read(tmp_path / "spark.json") is None
    assert Record.read(tmp_path / "absent.json") is None


def test_a_failed_write_raises_an_error_and_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: str, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(KeptSparkError, match="No space left on device"):
        record().write(tmp_path / "spark.json")
    assert list(tmp_path.iterdir()) == []

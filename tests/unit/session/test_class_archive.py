"""When an archive of Spark's classes is created, and its messages."""

from __future__ import annotations

import atexit
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.silt.session import class_archive
from dbt.adapters.silt.session.class_archive import WAREHOUSE, rehearse
from dbt.adapters.silt.session.java_launch import archive_path, find_java


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of the archive of an empty virtual environment."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(class_archive, "_OF_CONTAINERS", (tmp_path / "containerenv",))
    for name in (class_archive.SWITCH, *class_archive._OF_SHORT_LIVED_MACHINES):
        monkeypatch.delenv(name, raising=False)
    path = archive_path(find_java())
    assert path is not None and path.is_relative_to(tmp_path)
    return path


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file with the arguments with which the environment's Python was started."""
    python, said = tmp_path / "python", tmp_path / "said"
    python.write_text(f"#!/bin/sh\necho $@ > {said}.part && mv {said}.part {said}\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    yield said
    atexit.unregister(class_archive._start)


def would_be_created() -> bool:
    """Returns whether an archive would be created when this process ends."""
    before = atexit._ncallbacks()
    answer = class_archive.make_after_this_process()
    assert answer == (atexit._ncallbacks() > before)
    return answer


def test_an_archive_is_created_once_in_a_writable_virtual_environment(archive: Path, started: Path) -> None:
    assert would_be_created()
    assert class_archive.state() == "none yet: it is created in the background when this command ends"
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"")
    assert not would_be_created()
    assert class_archive.state() == str(archive)


def test_a_failed_attempt_is_not_repeated(archive: Path, started: Path) -> None:
    archive.parent.mkdir(parents=True)
    archive.with_suffix(".failed").write_text("")
    assert not would_be_created()
    assert class_archive.state() == "none: this Java created no usable archive"


def test_no_archive_is_created_if_the_user_disables_it(
    archive: Path, started: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(class_archive.SWITCH, "OFF")
    assert not would_be_created()
    assert class_archive.state() == "none: SILT_CLASS_ARCHIVE is off"


@pytest.mark.parametrize("variable", ["CI", "KUBERNETES_SERVICE_HOST", None])
def test_no_command_creates_an_archive_in_a_container_or_in_ci_unless_it_is_told_to(
    archive: Path, started: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str | None
) -> None:
    if variable is None:
        (tmp_path / "containerenv").touch()
    else:
        monkeypatch.setenv(variable, "true")
    assert not would_be_created()
    assert "`python -m dbt.adapters.silt.session.class_archive` does" in class_archive.state()
    monkeypatch.setenv(class_archive.SWITCH, "on")
    assert would_be_created()


def test_no_archive_is_created_outside_of_a_virtual_environment(started: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert not would_be_created()
    assert class_archive.state() == "none: archives are used in a virtual environment only"


def test_a_missing_java_causes_no_failure(started: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert not would_be_created()


def test_the_archive_is_created_by_a_process_that_no_command_waits_for(started: Path) -> None:
    class_archive._start()
    deadline = time.monotonic() + 300
    while not started.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert started.read_text() == "-m dbt.adapters.silt.session.class_archive --in-background\n"


def test_a_python_that_cannot_be_started_causes_no_failure(started: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(started))
    class_archive._start()
    assert not started.exists()


def test_an_archive_that_another_process_is_creating_is_not_created_again(archive: Path, started: Path) -> None:
    archive.parent.mkdir(parents=True)
    lock = archive.with_suffix(".lock")
    with subprocess.Popen(["flock", str(lock), "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None and other.stdout is not None
        other.stdin.write(b"held\n")
        other.stdin.flush()
        assert other.stdout.readline() == b"held\n"
        assert class_archive.main([]) == 0
        other.stdin.close()
    assert not archive.exists() and not archive.with_suffix(".failed").exists()


def test_archives_of_other_spark_files_are_deleted_with_the_creation_of_a_new_one(archive: Path) -> None:
    archive.parent.mkdir(parents=True)
    java = find_java()
    others = [archive.with_name(f"spark-4.0.0-java-{java.release}-0123abcd{suffix}") for suffix in (".jsa", ".json")]
    of_other_java = archive.with_name("spark-4.0.0-java-99-0123abcd.jsa")
    for path in (archive, archive.with_suffix(".lock"), of_other_java, *others):
        path.write_bytes(b"")
    class_archive._forget_others(archive, java)
    assert {path.name for path in archive.parent.iterdir()} == {
        archive.name,
        archive.with_suffix(".lock").name,
        of_other_java.name,
    }


@pytest.mark.long
def test_a_java_that_cannot_create_an_archive_is_remembered(
    archive: Path, started: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = find_java().path
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        '#!/bin/bash\nfor each; do case $each in -XX:ArchiveClassesAtExit*) ;; *) kept+=("$each");; esac; done\n'
        f'exec {real} "${{kept[@]}}"\n'
    )
    java.chmod(0o755)
    code = "import sys; sys.prefix = sys.argv[1]; from dbt.adapters.silt.session import class_archive as c; c.main([])"
    monkeypatch.undo()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=600)
    assert not archive.exists() and archive.with_suffix(".failed").exists()


def test_every_rehearsed_statement_works(spark: SparkSession, tmp_path: Path) -> None:
    rehearse(spark.newSession(), str(tmp_path))
    assert [each.name for each in tmp_path.iterdir()] == [WAREHOUSE]

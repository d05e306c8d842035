"""Which Spark a command gets: a running Spark, or a new Spark, which is started only once."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.kernel.errors import KeptSparkError
from dbt.adapters.silt.kept_spark import finding, leases, private_files
from dbt.adapters.silt.kept_spark.finding import Attached, attach, running
from dbt.adapters.silt.kept_spark.leases import Lease, Record, Use
from dbt.adapters.silt.kept_spark.private_files import Lock, acquire, is_held
from dbt.adapters.silt.kept_spark.watch import ALIVE, ENDED, RECORD, STOP
from tests.unit.kept_spark.house import Starts, record, use


@pytest.fixture
def starts() -> Iterator[Starts]:
    yield Starts()


def test_the_first_command_starts_a_spark_and_the_next_uses_it(tmp_path: Path, starts: Starts) -> None:
    first = starts.attach(tmp_path)
    second = starts.attach(tmp_path)
    assert (first.is_new, second.is_new) == (True, False)
    assert first.record == second.record
    assert first.lease.name != second.lease.name
    assert len(starts.keepers) == 1
    starts.kill()


def test_commands_that_start_together_start_only_one_spark(tmp_path: Path, starts: Starts) -> None:
    together = threading.Barrier(8)
    found: list[Attached] = []

    def begin() -> None:
        together.wait()
        found.append(starts.attach(tmp_path))

    threads = [threading.Thread(target=begin) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(starts.keepers) == 1
    assert {each.record.port for each in found} == {40001}
    assert [each.is_new for each in found].count(True) == 1
    starts.kill()


def test_the_files_of_a_killed_spark_are_ignored(tmp_path: Path, starts: Starts) -> None:
    first = starts.attach(tmp_path)
    starts.kill()
    assert Path(tmp_path, RECORD).exists()
    assert os.path.exists(f"/proc/{first.record.keeper}"), "its process id is in use again: here by the test itself"
    assert not first.is_alive()
    assert running(tmp_path) is None
    second = starts.attach(tmp_path)
    assert second.is_new
    assert second.record.port == 40002
    assert second.is_alive()
    assert not first.is_alive(), "another runs in its folder: who waits for the first would wait for ever"
    starts.kill()


def test_requests_and_results_for_a_killed_spark_are_deleted_when_the_next_starts(
    tmp_path: Path, starts: Starts
) -> None:
    private_files.private_folder(tmp_path)
    for left in (STOP, ENDED):
        private_files.write(tmp_path / left, b"force")
    starts.attach(tmp_path)
    assert not (tmp_path / STOP).exists()
    assert not (tmp_path / ENDED).exists()
    starts.kill()


def test_a_failed_start_of_spark_leaves_no_lock(tmp_path: Path, starts: Starts) -> None:
    def fail(folder: Path, alive: Lock) -> None:
        raise KeptSparkError("no memory")

    with pytest.raises(KeptSparkError, match="no memory"):
        attach(tmp_path, use(), fail)
    gate = leases.close_gate(tmp_path)
    assert gate is not None
    gate.release()
    assert starts.attach(tmp_path).is_new
    starts.kill()


def test_a_spark_that_ends_right_after_its_start_raises_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeptSparkError, match="ended right after its start"):
        attach(tmp_path, use(), lambda folder, alive: None)


def test_a_command_waits_for_a_spark_whose_starter_was_killed_before_it_was_ready(
    tmp_path: Path, starts: Starts, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive = acquire(tmp_path / ALIVE)
    assert alive is not None
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            record(7).write(tmp_path / RECORD)

    monkeypatch.setattr(finding.time, "sleep", wait)  # type: ignore[attr-defined]
    found = starts.attach(tmp_path)
    assert (found.record.port, found.is_new) == (7, False)
    assert starts.keepers == []
    alive.release()


def test_a_command_starts_a_spark_if_the_spark_that_it_waits_for_dies(
    tmp_path: Path, starts: Starts, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive = acquire(tmp_path / ALIVE)
    assert alive is not None
    monkeypatch.setattr(finding.time, "sleep", lambda seconds: alive.release())  # type: ignore[attr-defined]
    assert starts.attach(tmp_path).is_new
    starts.kill()


CLIENT = """
import os, sys
from pathlib import Path
from dbt.adapters.silt.kept_spark.leases import Use, take
lease = take(Path(sys.argv[1]), Use(os.getpid(), "dbt run", 1.0, 1.0))
reads, writes = os.pipe()
if os.fork() == 0:
    os.setsid()
    os.close(1)
    os.write(writes, b"!")
    sys.stdin.read()
    os._exit(0)
os.read(reads, 1)
print(lease.name, flush=True)
sys.stdin.read()
"""


def test_the_lease_of_a_killed_command_is_released_although_its_child_lives(tmp_path: Path) -> None:
    reads, writes = os.pipe()
    with os.fdopen(writes, "wb"):
        with subprocess.Popen(
            [sys.executable, "-c", CLIENT, str(tmp_path)], stdin=reads, stdout=subprocess.PIPE
        ) as client:
            os.close(reads)
            assert client.stdout is not None
            name = client.stdout.readline().decode().strip()
            assert [each.is_live for each in leases.found(tmp_path)] == [True]
            assert leases.close_gate(tmp_path) is None
            client.kill()
        assert [(each.name, each.is_live) for each in leases.found(tmp_path)] == [(name, False)]
        assert not is_held(tmp_path / leases.GATE)
        gate = leases.close_gate(tmp_path)
        assert gate is not None
        gate.release()


def test_a_spark_whose_java_has_just_ended_is_not_used_but_replaced(tmp_path: Path, starts: Starts) -> None:
    first = starts.attach(tmp_path)
    asked: list[int] = []

    def refuses(found: Record) -> bool:
        asked.append(found.port)
        if len(asked) == 2:
            starts.kill()  # the keeper notices the end of Java only now
        return False

    second = starts.attach(tmp_path, refuses)
    assert asked == [first.record.port] * 2
    assert second.is_new
    assert second.record != first.record
    starts.kill()


def test_a_spark_that_ends_between_the_lease_and_the_look_at_its_record_is_replaced(
    tmp_path: Path, starts: Starts, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = starts.attach(tmp_path)
    take = leases.take

    def ends_meanwhile(folder: Path, command: Use) -> Lease:
        lease = take(folder, command)
        starts.kill()
        return lease

    monkeypatch.setattr(leases, "take", ends_meanwhile)
    second = starts.attach(tmp_path)
    assert second.is_new
    assert second.record != first.record
    starts.kill()


def test_a_spark_can_be_used_while_it_runs_and_listens(tmp_path: Path, starts: Starts) -> None:
    attached = starts.attach(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as server:
        heard = replace(attached, record=replace(attached.record, port=server.getsockname()[1]))
        heard.record.write(tmp_path / RECORD)
        assert heard.can_be_used()
    assert heard.is_alive()
    assert not heard.can_be_used(), "Java has ended, and its keeper has not noticed it"
    starts.kill()
    assert not heard.is_alive()


def test_the_end_of_java_is_awaited_until_its_keeper_has_noticed_it(
    tmp_path: Path, starts: Starts, monkeypatch: pytest.MonkeyPatch
) -> None:
    attached = starts.attach(tmp_path)
    monkeypatch.setattr(finding.time, "sleep", lambda _: starts.kill())  # type: ignore[attr-defined]
    attached.wait_for_end()
    assert not attached.is_alive()

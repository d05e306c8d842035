"""When a kept Spark ends: steps of its keeper alternate with steps of commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.silt.engine.kernel.errors import KeptSparkError
from dbt.adapters.silt.kept_spark import leases, private_files
from dbt.adapters.silt.kept_spark.watch import IDLE, RECORD, STOP, Reason, how_it_ended, withdraw, write_end
from tests.unit.kept_spark.house import KEEP_ALIVE, MINUTE, Kept, record


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


def test_an_unused_spark_ends_after_its_idle_time_and_not_before(kept: Kept) -> None:
    assert kept.watch.step() is None
    kept.time = KEEP_ALIVE - 1
    assert kept.watch.step() is None
    kept.time = KEEP_ALIVE
    assert kept.watch.step() is Reason.AGE


def test_a_spark_in_use_does_not_end_however_long_the_use_lasts(kept: Kept) -> None:
    lease = kept.take()
    for hour in range(100):
        kept.time = hour * 60 * MINUTE
        assert kept.watch.step() is None
    lease.release()
    assert kept.watch.step() is None, "its time begins when the last command ends"
    kept.time += KEEP_ALIVE
    assert kept.watch.step() is Reason.AGE


def test_a_command_that_begins_and_ends_between_two_steps_begins_the_idle_time_again(kept: Kept) -> None:
    kept.watch.step()
    kept.time = KEEP_ALIVE - 1
    kept.take().release()
    assert kept.watch.step() is None
    kept.time = KEEP_ALIVE
    assert kept.watch.step() is None
    assert kept.spark.tidied == 2, "the state that this command left is cleared, too"
    kept.time = 2 * KEEP_ALIVE - 1
    assert kept.watch.step() is Reason.AGE


def test_a_command_that_starts_just_before_the_end_keeps_its_spark(kept: Kept) -> None:
    kept.watch.step()
    kept.time = KEEP_ALIVE
    lease = kept.take()
    assert kept.watch.step() is None
    assert kept.watch.gate is None
    lease.release()


def test_no_command_can_start_to_use_a_spark_that_ends(kept: Kept) -> None:
    kept.watch.step()
    kept.time = KEEP_ALIVE
    assert kept.watch.step() is Reason.AGE
    assert leases.close_gate(kept.folder) is None, "the gate stays closed until the keeper is gone"
    assert kept.watch.gate is not None
    kept.watch.gate.release()
    kept.take().release()


def test_a_command_that_holds_the_gate_without_a_lease_counts_as_a_user(kept: Kept) -> None:
    kept.watch.step()
    kept.time = KEEP_ALIVE
    gate = leases.acquire(kept.folder / leases.GATE, shared=True)  # type: ignore[attr-defined]
    assert gate is not None
    assert kept.watch.step() is None
    gate.release()
    assert kept.watch.step() is Reason.AGE


def test_the_sessions_of_an_ended_command_are_closed_once_and_other_sessions_remain_open(kept: Kept) -> None:
    dead, alive = kept.take(), kept.take()
    kept.watch.step()
    assert kept.spark.closed == []
    dead.release()
    kept.watch.step()
    kept.watch.step()
    assert kept.spark.closed == [dead.name]
    alive.release()


def test_state_shared_by_sessions_is_cleared_only_while_no_command_runs(kept: Kept) -> None:
    first = kept.take()
    kept.watch.step()
    assert kept.spark.tidied == 0
    second = kept.take()
    first.release()
    kept.watch.step()
    assert kept.spark.tidied == 0
    second.release()
    kept.watch.step()
    kept.watch.step()
    assert kept.spark.tidied == 1


def test_a_spark_that_cannot_be_cleaned_up_ends_before_the_next_command(kept: Kept) -> None:
    kept.spark.tidies = False
    assert kept.watch.step() is Reason.UNCLEAN


def test_the_last_started_command_decides_how_long_spark_is_kept(kept: Kept) -> None:
    long, short = kept.take(60 * MINUTE, started=1), kept.take(MINUTE, started=2)
    kept.watch.step()
    short.release()
    kept.watch.step()
    long.release()
    kept.watch.step()
    kept.time = MINUTE
    assert kept.watch.step() is Reason.AGE


def test_a_request_to_stop_is_obeyed_if_no_command_uses_spark(kept: Kept) -> None:
    private_files.write(kept.folder / STOP, b"idle")
    assert kept.watch.step() is Reason.ASKED


def test_a_request_to_stop_while_a_command_runs_is_refused_and_deleted(kept: Kept) -> None:
    lease = kept.take()
    private_files.write(kept.folder / STOP, b"idle")
    assert kept.watch.step() is None
    assert not (kept.folder / STOP).exists()
    lease.release()
    assert kept.watch.step() is None


def test_a_forced_stop_ends_spark_although_a_command_runs(kept: Kept) -> None:
    lease = kept.take()
    private_files.write(kept.folder / STOP, b"force")
    assert kept.watch.step() is Reason.FORCED
    lease.release()


def test_a_keeper_whose_java_died_ends_although_a_command_runs(kept: Kept) -> None:
    lease = kept.take()
    kept.spark.alive = False
    assert kept.watch.step() is Reason.DIED
    lease.release()


@pytest.mark.parametrize("lost", ["deleted", "replaced"])
def test_a_spark_that_no_command_can_find_ends_after_its_last_command(kept: Kept, lost: str) -> None:
    lease = kept.take()
    kept.watch.step()
    (kept.folder / RECORD).unlink()
    if lost == "replaced":
        record(port=1).write(kept.folder / RECORD)
    assert kept.watch.step() is None
    lease.release()
    assert kept.watch.step() is Reason.LOST


def test_a_file_marks_the_time_since_which_spark_is_idle(kept: Kept) -> None:
    kept.watch.step()
    assert (kept.folder / IDLE).exists()
    lease = kept.take()
    kept.watch.step()
    assert not (kept.folder / IDLE).exists()
    lease.release()


def test_commands_can_read_why_their_spark_ended(tmp_path: Path) -> None:
    assert how_it_ended(tmp_path) == (None, None)
    write_end(tmp_path, Reason.DIED, 137)
    assert how_it_ended(tmp_path) == (Reason.DIED, 137)


def test_withdrawing_deletes_the_record_and_the_request_to_stop(kept: Kept) -> None:
    private_files.write(kept.folder / STOP, b"idle")
    withdraw(kept.folder)
    assert not (kept.folder / RECORD).exists()
    assert not (kept.folder / STOP).exists()


def test_a_record_that_other_users_may_read_is_refused(kept: Kept) -> None:
    (kept.folder / RECORD).chmod(0o644)
    with pytest.raises(KeptSparkError, match="not a regular file that only you can access"):
        kept.watch.step()

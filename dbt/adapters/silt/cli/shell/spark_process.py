"""Runs statements by Spark in a process of its own, which starts with the first statement and ends with the shell."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from dbt.adapters.silt.cli.shell.output import CancelledError, Change, Result, RowsFound, StatementFailedError
from dbt.adapters.silt.command_server import client
from dbt.adapters.silt.engine.kernel.errors import CommitStateUnknownError, SiltError, SparkEndedError

_END_SECONDS: Final = 20
STARTS: Final = "silt: this statement needs Spark, which starts now"
CONNECTS: Final = "silt: this statement needs Spark, and connects to it by Spark Connect"
STAYS: Final = "silt: this statement needs Spark: the kept Spark (`keep_alive`) is used, or starts now"


@dataclass
class SparkProcess:
    """The process of Spark.

    Args:
        profile: the request that opens the warehouse, see `session.statement_process`.
        notice: the message to the user when the process starts.
        is_kept: whether Spark may be kept between commands; a command server then runs the process.
    """

    profile: Mapping[str, Any]
    notice: str = STARTS
    is_kept: bool = False
    sessions_ended: int = field(default=0, init=False)
    """The number of sessions that ended while the shell ran; settings made by their statements are lost."""
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def run(
        self,
        text: str,
        most: int | None = None,
        may_commit: bool = True,
        txn: tuple[str, int] | None = None,
        owner: str | None = None,
    ) -> Result:
        """Runs a statement.

        Args:
            most: the maximum number of its rows to return; by default all.
            may_commit: whether it changes data or metadata.
            txn: the application id and version under which a changed table records it.
            owner: the program that has stored the statement in the warehouse, if it was stored there.

        Raises:
            StatementFailedError: if it failed.
            CancelledError: if it was cancelled, as by Ctrl-C, and has committed nothing.
            SparkEndedError: if the process has ended; nothing was committed.
            CommitStateUnknownError: if the process has ended, or was killed, and the statement may be committed.
        """
        self._start()
        try:
            self._send({"run": text, "most": most, "txn": txn, "owner": owner})
            return self._result()
        except KeyboardInterrupt:
            return self._cancelled(may_commit)
        except SparkEndedError as error:
            raise self._lost(may_commit) from error

    def close(self) -> None:
        """Stops Spark; running statements are stopped, and commit nothing."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(_END_SECONDS)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            _kill(process)
        process.stdout.close()

    def _start(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        print(self.notice, file=sys.stderr, flush=True)
        # A process group of its own: the terminal's Ctrl-C is for the shell, which decides about cancellation.
        self._process = subprocess.Popen(
            self._command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        try:
            self._send(self.profile)
            self._received()
        except KeyboardInterrupt:
            self._end_now()
            raise CancelledError from None
        except StatementFailedError:
            self.close()
            raise

    def _command(self) -> list[str]:
        """Returns the command line of the process.

        If Spark may be kept, it is this process's command line with another subcommand, because a command server
        accepts only commands that were started like its first command.
        """
        own = sys.argv[1:]
        if self.is_kept and own[:1] == ["sql"] and sys.orig_argv[-len(own) :] == own:
            return [sys.executable, *sys.orig_argv[1 : -len(own)], client.STATEMENTS]
        return [sys.executable, "-m", client.STATEMENTS_MODULE]

    def _cancelled(self, may_commit: bool) -> Result:
        """Returns the result if the statement completes anyway; a second Ctrl-C stops Spark."""
        try:
            self._send({"cancel": True})
            return self._result()
        except KeyboardInterrupt:
            lost = self._lost(may_commit)
            raise lost if may_commit else CancelledError from None
        except SparkEndedError as error:
            raise self._lost(may_commit) from error

    def _lost(self, may_commit: bool) -> SiltError:
        """Kills the process, if it has not ended, after a statement without an answer."""
        self._end_now()
        self.sessions_ended += 1
        if not may_commit:
            return _ended()
        return CommitStateUnknownError(
            "the Spark process ended while the statement ran, so the statement may be committed",
            remedy=CommitStateUnknownError.remedy_without_run,
        )

    def _end_now(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            _kill(process)

    def _send(self, request: Mapping[str, Any]) -> None:
        process = self._running
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError as error:
            raise _ended() from error

    def _result(self) -> Result:
        answer, stream = self._received()
        if answer.get("cancelled"):
            raise CancelledError
        if answer.get("rows"):
            with pa.ipc.open_stream(stream) as reader:
                return RowsFound(reader.read_all(), answer.get("note", ""))
        return Change(answer["done"], answer["outcome"])

    def _received(self) -> tuple[Mapping[str, Any], bytes]:
        """Receives an answer, and the Arrow stream after it.

        Raises:
            StatementFailedError: if the answer is an error.
            SparkEndedError: if the process ends without an answer.
        """
        process = self._running
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.endswith(b"\n"):
            raise _ended()
        answer = json.loads(line)
        stream = process.stdout.read(answer["bytes"])
        if len(stream) < answer["bytes"]:
            raise _ended()
        if "error" in answer:
            if answer["ended"]:
                self.sessions_ended += 1
                self.close()
            raise StatementFailedError(answer["error"], answer["damage"])
        return answer, stream

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise _ended()
        return self._process


def _ended() -> SparkEndedError:
    return SparkEndedError("the Spark process has ended")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kills the process and its Java."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()

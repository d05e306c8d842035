"""Processes that use a kept Spark, as commands do: each runs lines of Python that the test sends."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.conftest import INTERPRETED, SPARK_SETTINGS

ROOT = Path(__file__).parents[3]

_PROGRAM = """
import json, os, sys, traceback
from datetime import timedelta
from dbt.adapters.silt.engine.commands.spark.errors import of_spark
from dbt.adapters.silt.session import kept
from dbt.adapters.silt.session.spark import SessionSettings, open_session

settings = json.loads(sys.argv[1])
conf = settings["spark_conf"]
stays = settings["keep_alive"]
names = globals()

def open(**more):
    length = None if stays is None else timedelta(seconds=stays)
    return open_session(SessionSettings("local[2]", spark_conf={**conf, **more}, keep_alive=length))

def attached():
    [found] = kept._attached.values()
    return found

for line in sys.stdin:
    try:
        code = json.loads(line)
        try:
            answer = eval(code, names)
        except SyntaxError:
            answer = exec(code, names)
        said = {"answer": answer}
    except BaseException as error:
        known = of_spark(error)
        said = {"error": f"{type(known).__name__}: {known}"[:600]}
    print(json.dumps(said, default=str), flush=True)
"""


class Client:
    """A process with `open()`, which opens a session of the Spark with the settings of all clients.

    Args:
        cache: the folder of kept Sparks.
        keep_alive: how long Spark is kept, in seconds; None if it belongs to the process.
    """

    def __init__(self, cache: Path, keep_alive: float | None = 600, **environment: str) -> None:
        settings = {"spark_conf": SPARK_SETTINGS | INTERPRETED, "keep_alive": keep_alive}
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", _PROGRAM, json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "XDG_CACHE_HOME": str(cache), **environment},
        )

    def begin(self, code: str) -> None:
        """Starts an expression or statements in the process; `answer` returns the result."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(code) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the process ended with {self.process.wait()}"
        said = json.loads(line)
        if "error" in said:
            raise RuntimeError(said["error"])
        return said["answer"]

    def run(self, code: str) -> Any:
        self.begin(code)
        return self.answer()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def kill(self) -> None:
        self.process.kill()
        self.close()

    def close(self) -> None:
        """Ends the process in the way a command ends."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(30)
        self.process.kill()
        self.process.__exit__(None, None, None)

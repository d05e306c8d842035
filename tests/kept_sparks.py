"""The folder of the tests' kept Sparks: only tests use it, and every Spark in it is stopped when they end."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from dbt.adapters.silt.kept_spark import listing
from dbt.adapters.silt.session import kept


def of_their_own(cache: Path) -> contextlib.ExitStack:
    """Makes this process and its children keep their Sparks below a folder, until the stack is closed."""
    os.environ["XDG_CACHE_HOME"] = str(cache)
    until = contextlib.ExitStack()
    until.callback(stop_all, cache)
    until.callback(_detach)
    return until


def _detach() -> None:
    """Releases every Spark that this process is attached to."""
    while kept._attached:
        kept._attached.popitem()[1].lease.release()


def folder(cache: Path) -> Path:
    """Returns the folder of kept Sparks, below the user's cache folder."""
    return cache / "dbt-silt" / "spark"


def stop_all(cache: Path) -> None:
    """Stops every Spark that is kept there, even if it is in use."""
    for each in listing.running(folder(cache)):
        listing.stop(each, force=True)


def kill() -> None:
    """Kills the Java process of each kept Spark of this user, and waits for it to end."""
    for each in listing.running():
        os.kill(each.record.java, signal.SIGKILL)
        while Path(f"/proc/{each.record.java}").exists():
            time.sleep(0.01)

"""The folder of the tests' kept Sparks: it is used by tests only, and every Spark in it is stopped at their end."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from dbt.adapters.silt.kept_spark import listing
from dbt.adapters.silt.session import kept


def of_their_own(cache: Path) -> contextlib.ExitStack:
    """Has this process and those that it starts keep their Sparks below a folder, until the stack is closed."""
    os.environ["XDG_CACHE_HOME"] = str(cache)
    until = contextlib.ExitStack()
    until.callback(stop_all, cache)
    until.callback(kept.detach)
    return until


def folder(cache: Path) -> Path:
    """Where Sparks are kept, below the user's cache folder."""
    return cache / "dbt-silt" / "spark"


def stop_all(cache: Path) -> None:
    """Ends every Spark that is kept there, also under those that use it."""
    for each in listing.running(folder(cache)):
        listing.stop(each, force=True)


def kill() -> None:
    """Kills the Java of the Sparks that this user keeps, and waits until each is gone."""
    for each in listing.running():
        os.kill(each.record.java, signal.SIGKILL)
        while Path(f"/proc/{each.record.java}").exists():
            time.sleep(0.01)

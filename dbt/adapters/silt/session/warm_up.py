"""Starts Spark while dbt reads the project, and runs typical statements until the first connection is asked for."""

from __future__ import annotations

import atexit
import contextlib
import logging
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from dbt.adapters.silt.engine.commands.spark.errors import SPARKS
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.session.rehearsal import FIRST, WAREHOUSE, rehearse
from dbt.adapters.silt.session.spark import SessionPool, SessionSettings, own_folder

_logger = logging.getLogger(__name__)


class WarmUp:
    """A thread that does what it can before it is stopped, and whose failures nobody hears of.

    Args:
        started: starts Spark, or waits until it is started; gives its sessions.
        settings: those of Spark.
    """

    def __init__(self, started: Callable[[], SessionPool], settings: SessionSettings) -> None:
        self._started = started
        self._rehearses = _may_rehearse(settings)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="silt-spark-start", daemon=True)

    def start(self) -> None:
        """Begins, and returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """Lets no further statement begin; the one that runs goes on while the next begins."""
        self._stopped.set()

    def _run(self) -> None:
        is_first = own_folder() is None
        with contextlib.suppress(SiltError):  # the first connection meets the same error, and reports it
            pool = self._started()
            folder = own_folder()
            if is_first and self._rehearses and folder is not None and not self._stopped.is_set():
                atexit.register(self._end)  # before the folder is deleted, and Java is ended
                self._rehearse(pool, folder)

    def _rehearse(self, pool: SessionPool, folder: str) -> None:
        _logger.debug("the rehearsal begins")
        try:
            rehearse(pool.acquire(), folder, FIRST, goes_on=lambda: not self._stopped.is_set())
        except (SiltError, OSError, *SPARKS) as error:  # such as of a Spark that was stopped meanwhile
            _logger.debug("the rehearsal failed: %s", error)
        finally:
            shutil.rmtree(Path(folder, WAREHOUSE), ignore_errors=True)
            _logger.debug("the rehearsal ended")

    def _end(self) -> None:
        self.stop()
        self._thread.join(_END_SECONDS)


_END_SECONDS: Final = 10

_WATCHED: Final = (
    "spark.eventLog.",
    "spark.extraListeners",
    "spark.plugins",
    "spark.sql.extensions",
    "spark.sql.queryExecutionListeners",
    "spark.sql.streaming.",
    "spark.ui.enabled",
)
"""Settings with which somebody sees, or changes, what Spark runs: then only what the project asks for is run."""


def _may_rehearse(settings: SessionSettings) -> bool:
    is_watched = any(key.startswith(_WATCHED) for key in settings.spark_conf)
    return settings.remote is None and not is_watched

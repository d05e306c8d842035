"""Starts Spark while dbt reads the project, and runs typical statements until the first connection is asked for."""

from __future__ import annotations

import atexit
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
    """Does what it can before it is stopped; nobody hears of its failures.

    Args:
        started: starts Spark, or waits until it is started; gives its sessions.
        settings: those of Spark.
    """

    def __init__(self, started: Callable[[], SessionPool], settings: SessionSettings) -> None:
        self._started = started
        self._rehearses = _may_rehearse(settings)
        self._stopped = threading.Event()
        self._is_done = threading.Event()

    def stop(self) -> None:
        """Lets no further statement begin; the one that runs goes on while the next begins."""
        self._stopped.set()

    def run(self) -> None:
        """Starts Spark, where it does not run, and then rehearses.

        Raises:
            SiltError: Spark cannot be started; the first connection meets the same error, and reports it.
        """
        is_first = own_folder() is None
        try:
            pool = self._started()
            folder = own_folder()
            if is_first and self._rehearses and folder is not None and not self._stopped.is_set():
                atexit.register(self._end)  # before the folder is deleted, and Java is ended
                self._rehearse(pool, folder)
        finally:
            self._is_done.set()

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
        self._is_done.wait(_END_SECONDS)


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

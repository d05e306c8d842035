"""Runs dbt as the `dbt` command does, and writes the end and the cost of each phase of the run.

`python marked_dbt.py FILE BEGAN ARGUMENT ...`: the marks go to the file, in seconds since the moment BEGAN, at which
the process was asked for; the arguments are dbt's.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner

FIRST_OF = ("NodeStart", "NodeFinished")
LAST_OF = "NodeFinished"
EVENTS = ("AdapterRegistered", "FoundStats", "CommandCompleted")


@dataclass
class Marks:
    """The moments of a run, by name; for repeated moments, the first, and the last as `last ...`."""

    began: float
    moments: dict[str, float] = field(default_factory=dict)

    def note(self, name: str) -> None:
        """Records the present time as a moment that is not recorded yet."""
        self.moments.setdefault(name, time.time() - self.began)

    def on_event(self, event: Any) -> None:
        """Handles an event of dbt."""
        name = event.info.name
        if name in EVENTS or name in FIRST_OF:
            self.note(name)
        if name == LAST_OF:
            self.moments[f"last {name}"] = time.time() - self.began


class Listener(logging.Handler):
    """Handles the log messages of the package about its start."""

    def __init__(self, marks: Marks) -> None:
        super().__init__(logging.DEBUG)
        self._marks = marks

    def emit(self, record: logging.LogRecord) -> None:
        self._marks.note(record.getMessage())


def main(arguments: Sequence[str]) -> int:
    """Runs dbt, and returns 0 if it succeeded."""
    file, began, *of_dbt = arguments
    marks = Marks(float(began))
    marks.note("imported")
    logger = logging.getLogger("dbt.adapters.silt")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.addHandler(Listener(marks))
    outcome = dbtRunner(callbacks=[marks.on_event]).invoke(of_dbt)
    seconds = {"python": time.process_time(), "java": _java_seconds()}
    Path(file).write_text(json.dumps({"moments": marks.moments, "processor": seconds}), encoding="utf-8")
    return 0 if outcome.success else 1


def _java_seconds() -> float | None:
    """Returns the processor time of Spark's Java, or None if unknown."""
    pyspark = sys.modules.get("pyspark")  # this module does not import it, because the adapter may not need it
    process = None if pyspark is None else getattr(pyspark.SparkContext._gateway, "proc", None)
    stat = Path("/proc", str(getattr(process, "pid", "")), "stat")
    if process is None or not stat.is_file():
        return None
    user, system = stat.read_text(encoding="utf-8").rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

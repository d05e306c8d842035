"""Finds repeated stages and tasks in Spark's event log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass
class Repeated:
    """The stages and tasks that Spark ran more than once, according to its event log."""

    stages: int = 0
    tasks: int = 0
    speculative: int = 0
    ended: int = 0

    def __bool__(self) -> bool:
        return bool(self.stages or self.tasks or self.speculative)


@dataclass
class EventLog:
    """Spark's event log, read as it grows."""

    folder: Path
    _read: int = 0
    _rest: str = ""

    def new(self) -> Iterator[dict[str, Any]]:
        files = sorted(path for path in self.folder.rglob("*") if path.is_file() and path.name.startswith("events_"))
        text = "".join(path.read_text() for path in files)
        lines = (self._rest + text[self._read :]).split("\n")
        self._read, self._rest = len(text), lines.pop()
        yield from (json.loads(line) for line in lines if line)

    def repeated(self) -> Repeated:
        """Returns the repetitions since the last call."""
        found = Repeated()
        for event in self.new():
            if event["Event"] == "SparkListenerTaskEnd":
                info = event["Task Info"]
                found.ended += 1
                found.speculative += bool(info["Speculative"])
                found.tasks += info["Attempt"] > 0 and not info["Speculative"]
            elif event["Event"] == "SparkListenerStageSubmitted":
                found.stages += event["Stage Info"]["Stage Attempt ID"] > 0
        return found

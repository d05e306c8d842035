"""Histories of processes on the kernel, over a folder or an object store: each client is one, and may be killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dbt.adapters.silt.engine.kernel.clock import SystemClock
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.storage.object_store import ObjectStore
from dbt.adapters.silt.engine.kernel.storage.store import Store
from tests.faulty_store import Fault, FaultKind, FaultyStore
from tests.histories.client import Client, Journal
from tests.histories.history import History
from tests.histories.interleaved import LOST, history_of, workload
from tests.histories.kernel_door import KernelDoor

_PLACE: Final = "place.json"
_KILLED: Final = 0.02
"""The probability that a look at the processes kills one of them."""
_POLL: Final = 0.05


@dataclass(frozen=True)
class Place:
    """Where the tables are, and what the clients ask for; `place.json` in the folder of the journals has it.

    Attributes:
        url: of an object store; empty for the folder of the journals.
    """

    folder: Path
    seed: int
    clients: int
    length: int
    url: str = ""
    options: Mapping[str, str] | None = None

    def write(self) -> None:
        fields = {**vars(self), "folder": str(self.folder), "options": dict(self.options or {})}
        (self.folder / _PLACE).write_text(json.dumps(fields))

    @classmethod
    def read(cls, folder: Path) -> Place:
        return cls(**{**json.loads((folder / _PLACE).read_text()), "folder": folder})

    def door(self, lost: float = 0.0) -> KernelDoor:
        return KernelDoor.over(self._store(lost), workload(self.seed, self.clients, self.length), SystemClock())

    def _store(self, lost: float) -> Store:
        store: Store = LocalStore(self.folder)
        if self.url:
            store = ObjectStore(self.url, dict(self.options or {})).never_reused()
        faults = [Fault("put_if_absent", FaultKind.FAIL_AFTER, "*.json", probability=lost)]
        return FaultyStore(store, faults, seed=os.getpid(), clock=SystemClock()) if lost else store

    def journal(self, client: int) -> Path:
        return self.folder / f"client-{client}.jsonl"

    def lines(self, client: int) -> list[str]:
        """The whole lines of a journal; a killed client may leave a part of a line."""
        text = self.journal(client).read_text() if self.journal(client).exists() else ""
        return text[: text.rfind("\n") + 1].splitlines()


def history(place: Place, kills: int) -> History:
    """Starts a process for each client, kills some at random moments and starts them again, and reads all keys."""
    place.write()
    asked = workload(place.seed, place.clients, place.length)
    place.door().create(asked)
    chance, left = random.Random(place.seed), kills
    running = {client: _start(place, client) for client in range(place.clients)}
    try:
        while running:
            time.sleep(_POLL)
            for client, process in list(running.items()):
                code = process.poll()
                assert code in (None, 0, -signal.SIGKILL), f"client {client} ended with {code}"
                if code is not None:
                    del running[client]
                    if code:
                        running[client] = _start(place, client)
            if left and running and chance.random() < _KILLED:
                running[chance.choice(sorted(running))].kill()
                left -= 1
    finally:
        for process in running.values():
            process.kill()
            process.wait()
    return history_of(asked, place.door(), [place.lines(client) for client in range(place.clients)], time.monotonic_ns)


def live(place: Place, index: int) -> None:
    """The life of one client, from the first request that has no end in its journal."""
    lines = place.lines(index)
    place.journal(index).write_text("".join(f"{line}\n" for line in lines))
    with place.journal(index).open("a", buffering=1) as file:
        journal = Journal(lambda line: file.write(f"{line}\n"), time.monotonic_ns)
        requests = workload(place.seed, place.clients, place.length).requests(index)
        Client(index, requests, place.door(LOST), journal).live(lines)


def _start(place: Place, client: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.histories.processes", str(place.folder), str(client)]
    return subprocess.Popen(command, cwd=Path(__file__).parents[2])


if __name__ == "__main__":
    live(Place.read(Path(sys.argv[1])), int(sys.argv[2]))

"""What had landed when something failed: dbt drops the adapter response of a node that fails, so its error says it."""

from __future__ import annotations

import json
import shlex
import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from dbt.adapters.silt.records.run_registry import RUN_ID_VARIABLE
from dbt.adapters.silt.runs.response import SiltResponse

_SHOWN: Final = 8


@dataclass(frozen=True)
class _Unit:
    node_id: str | None
    response: SiltResponse


@dataclass
class CommittedWork:
    """The units of work that are done in one piece of work, by nodes of one thread, and no error has told of yet."""

    _units: list[_Unit] = field(default_factory=list)

    def note(self, node_id: str | None, response: SiltResponse) -> None:
        """Keeps the response of a unit of work that was committed, or found to be done."""
        self._units.append(_Unit(node_id, response))

    def take_message(self, node_id: str | None) -> str | None:
        """What an error of a node must say; None where nothing has landed, or an error has said it already."""
        own = [unit for unit in self._units if unit.node_id == node_id]
        self._units = [unit for unit in self._units if unit.node_id != node_id]
        return committed_message([unit.response for unit in own])

    def take_all_messages(self) -> str | None:
        """What an error outside of any node must say."""
        units, self._units = self._units, []
        return committed_message([unit.response for unit in units])


class CommittedBatches:
    """The batches of microbatch models: dbt makes one result of them, and keeps nothing of theirs in it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._done: dict[str, list[SiltResponse]] = defaultdict(list)
        self._failed: set[str] = set()

    def note(self, node_id: str, response: SiltResponse) -> None:
        """Keeps what a batch has committed, or was found to have."""
        with self._lock:
            self._done[node_id].append(response)

    def fail(self, node_id: str) -> None:
        """A batch of the model did not come to its end."""
        with self._lock:
            self._failed.add(node_id)

    def ended(self, node_id: str) -> str | None:
        """What is to be said of a model whose batches are all through; None where none failed, or none landed."""
        with self._lock:
            done = self._done.pop(node_id, [])
            failed = node_id in self._failed
            self._failed.discard(node_id)
        return committed_message(done) if failed else None


def committed_message(responses: Sequence[SiltResponse]) -> str | None:
    """Where units of work of one run are, and what a rerun does not do again; None where there are none."""
    places = list(dict.fromkeys(_place(each) for each in responses))
    if not places:
        return None
    more = f" and {len(places) - _SHOWN:,} more" if len(places) > _SHOWN else ""
    run_id = next((each.run_id for each in responses if each.run_id), None)
    variables = shlex.quote(json.dumps({RUN_ID_VARIABLE: run_id}))
    return (
        f"already committed as {', '.join(places[:_SHOWN])}{more}; a rerun with this run id is a no-op "
        f"(`dbt retry`, or the same command with --vars {variables})"
    )


def _place(response: SiltResponse) -> str:
    version = "" if response.table_version is None else f"@v{response.table_version}"
    return f"{response.table}{version}"

"""Lists the commits of a node in its error, since dbt drops the adapter response of a failed node."""

from __future__ import annotations

import json
import shlex
import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from dbt.adapters.silt.records.run_registry import RUN_ID_VARIABLE

if TYPE_CHECKING:
    from dbt.adapters.silt.runs.response import SiltResponse

_SHOWN: Final = 8
_REASONS_SHOWN: Final = 3


@dataclass(frozen=True)
class _Unit:
    node_id: str | None
    response: SiltResponse


@dataclass
class CommittedWork:
    """The committed units of work of a thread's node or operation that no error has listed yet."""

    _units: list[_Unit] = field(default_factory=list)

    def note(self, node_id: str | None, response: SiltResponse) -> None:
        """Keeps the response of a unit of work that was committed now or earlier."""
        self._units.append(_Unit(node_id, response))

    def take_message(self, node_id: str | None) -> str | None:
        """Returns the text for an error of a node, once, or None if the node has committed nothing."""
        own = [unit for unit in self._units if unit.node_id == node_id]
        self._units = [unit for unit in self._units if unit.node_id != node_id]
        return committed_message([unit.response for unit in own])

    def take_all_messages(self) -> str | None:
        """Returns the text for an error outside of any node, once, or None if nothing was committed."""
        units, self._units = self._units, []
        return committed_message([unit.response for unit in units])


@dataclass(frozen=True)
class FailedBatches:
    """The result of a microbatch model with failed batches.

    Attributes:
        message: the reasons, and the commits of the other batches.
        is_whole: whether no batch completed, and a reason is known.
    """

    message: str | None
    is_whole: bool = False


@dataclass
class _Batches:
    """The finished batches of a model."""

    done: list[SiltResponse] = field(default_factory=list)
    reasons: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    has_failed: bool = False
    has_ended: bool = False


class CommittedBatches:
    """The results of the batches of microbatch models: dbt merges them, and drops responses and reasons."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._models: dict[str, _Batches] = defaultdict(_Batches)

    def note(self, node_id: str, response: SiltResponse) -> None:
        """Keeps the response of a batch that was committed now or earlier."""
        with self._lock:
            self._models[node_id].done.append(response)

    def end(self, node_id: str) -> None:
        """Notes that a batch of the model completed."""
        with self._lock:
            self._models[node_id].has_ended = True

    def fail(self, node_id: str, batch_id: str | None = None, reason: str | None = None) -> None:
        """Notes that a batch of the model did not complete, and the reason if it is known."""
        with self._lock:
            self._models[node_id].has_failed = True
            if batch_id is not None and reason is not None:
                self._models[node_id].reasons[reason].append(batch_id)

    def ended(self, node_id: str) -> FailedBatches | None:
        """Returns, once, the failures of a model whose batches have all run, or None if no batch failed."""
        with self._lock:
            found = self._models.pop(node_id, _Batches())
        if not found.has_failed:
            return None
        reasons = list(found.reasons.items())
        lines = [f"batch {', '.join(batches)}: {reason}" for reason, batches in reasons[:_REASONS_SHOWN]]
        if len(reasons) > _REASONS_SHOWN:
            lines.append(f"and {len(reasons) - _REASONS_SHOWN} more reasons")
        lines.append(committed_message(found.done) or "")
        return FailedBatches("\n".join(filter(None, lines)) or None, bool(reasons) and not found.has_ended)


def committed_message(responses: Sequence[SiltResponse]) -> str | None:
    """Lists the commits of a run's units of work, which a rerun skips, or returns None without commits."""
    commits = list(dict.fromkeys(_commit_name(each) for each in responses))
    if not commits:
        return None
    more = f" and {len(commits) - _SHOWN:,} more" if len(commits) > _SHOWN else ""
    run_id = next((each.run_id for each in responses if each.run_id), None)
    variables = shlex.quote(json.dumps({RUN_ID_VARIABLE: run_id}))
    return (
        f"already committed as {', '.join(commits[:_SHOWN])}{more}; a rerun with this run id skips that and does the "
        f"rest (`dbt retry`, or the same command with --vars {variables})"
    )


def _commit_name(response: SiltResponse) -> str:
    version = "" if response.table_version is None else f"@v{response.table_version}"
    return f"{response.table}{version}"

"""Checks the invariants of a world by a replay that shares no code with the engine.

The commits are applied in order, as plain JSON, to dictionaries. The reads and writes of the processes are compared
with the result.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.silt.engine.kernel.table.property_values import IsolationLevel
from tests.simulation.statements import COUNT, Statement
from tests.simulation.world import Landing, World

ATTEMPT = "attempt"
"""The field of `commitInfo` that names the attempt at a statement."""

COMMITTED, FAILED, UNKNOWN, CRASHED = "committed", "failed", "unknown", "crashed"


class Violation(AssertionError):
    """An invariant is broken."""


@dataclass
class Attempt:
    """One run of a statement, from its snapshot to its end.

    Attributes:
        outcome: COMMITTED, FAILED, UNKNOWN or CRASHED; None while it runs, and if it had nothing to do.
        version: the reported version.
    """

    number: int
    statement: Statement
    level: IsolationLevel
    outcome: str | None = None
    version: int | None = None


@dataclass(frozen=True)
class Seen:
    """The content that a process read from a table: version, rows and transaction identifiers."""

    table_id: str
    version: int
    rows: Mapping[int, int]
    transactions: frozenset[str]


@dataclass(frozen=True)
class Look:
    """The content that one statement read from one or more tables, between two steps of the world.

    Attributes:
        is_newest: whether it requested the newest versions, and no fault hid them.
    """

    seen: tuple[Seen, ...]
    began: int
    ended: int
    is_newest: bool = True


@dataclass
class Version:
    """A table at one version: rows by file, and the rest of the log's state."""

    landing: Landing
    info: Mapping[str, Any]
    table_id: str
    files: dict[str, dict[int, int]]
    configuration: Mapping[str, str]
    transactions: frozenset[str]
    added: dict[str, dict[int, int]] = field(default_factory=dict)
    removed: dict[str, dict[int, int]] = field(default_factory=dict)

    @property
    def rows(self) -> dict[int, int]:
        merged = {key: amount for rows in self.files.values() for key, amount in rows.items()}
        _require(len(merged) == sum(map(len, self.files.values())), f"a row is in two files: {self.name}")
        return merged

    @property
    def name(self) -> str:
        return f"version {self.landing.version} of log {self.landing.log}, by {self.info.get('operation')}"


def check(world: World, attempts: Sequence[Attempt], looks: Sequence[Look]) -> list[list[Version]]:
    """Checks all invariants.

    Returns:
        The versions of each log, in the order of the logs.

    Raises:
        Violation: if an invariant is broken.
    """
    histories = [list(_replayed(world, log)) for log in sorted({landing.log for landing in world.landings})]
    _check_attempts(histories, attempts, world.storage.has_folders)
    for history in histories:
        _check_serial(history, attempts)
    by_id = {history[0].table_id: history for history in histories}
    for look in looks:
        _check_look(look, by_id)
    return histories


def check_retained(world: World, tables: Collection[str], since_ms: int) -> None:
    """Checks that all files exist of the versions of these tables that were the newest at or after a time.

    Raises:
        Violation: if a file is missing.
    """
    for log in sorted({landing.log for landing in world.landings if landing.table in tables}):
        history = list(_replayed(world, log))
        for version, after in itertools.zip_longest(history, history[1:]):
            if after is not None and after.landing.at_ms < since_ms:
                continue
            for path in version.files:
                there = world.storage.status(f"{version.landing.folder}/{path}") is not None
                _require(there, f"{path}, which {version.name} needs, is deleted")


def _replayed(world: World, log: int) -> Iterator[Version]:
    """Yields the versions of one log, each checked against the previous version."""
    landings = sorted(_until_drop(each for each in world.landings if each.log == log), key=lambda each: each.version)
    _require(
        [each.version for each in landings] == list(range(len(landings))),
        f"log {log} has gaps, or a version twice: {[each.version for each in landings]}",
    )
    _require(landings == sorted(landings, key=lambda each: each.at), f"versions of log {log} came out of order")
    last: Version | None = None
    for landing in landings:
        last = _next(world, landing, last)
        yield last


def _until_drop(landings: Iterable[Landing]) -> Iterator[Landing]:
    """Yields the commits of one log in the order of their writes, up to the drop.

    A later commit was written into an emptied folder, is never read, and raised an error in its writer.
    """
    for landing in landings:
        yield landing
        if b'"silt.dropped"' in landing.data:
            return


def _next(world: World, landing: Landing, last: Version | None) -> Version:
    version = Version(landing, {}, "", {}, {}, frozenset())
    if last is not None:
        version = Version(landing, {}, last.table_id, dict(last.files), last.configuration, last.transactions)
    for line in landing.data.decode().splitlines():
        ((kind, action),) = json.loads(line).items()
        if kind == "commitInfo":
            version.info = action
        elif kind == "metaData":
            version.table_id, version.configuration = action["id"], action["configuration"]
        elif kind == "txn":
            _require(action["appId"] not in version.transactions, f"{action['appId']} is applied twice")
            version.transactions |= {action["appId"]}
        elif kind == "remove":
            _require(action["path"] in version.files, f"{action['path']} is not there to remove: {version.name}")
            version.removed[action["path"]] = version.files.pop(action["path"])
        elif kind == "add":
            _require(action["path"] not in version.files, f"{action['path']} is added twice: {version.name}")
            rows = dict(json.loads(world.contents[action["path"]]))
            version.files[action["path"]] = version.added[action["path"]] = rows
    return version


def _check_attempts(histories: Sequence[Sequence[Version]], attempts: Sequence[Attempt], has_folders: bool) -> None:
    """Checks that each attempt was committed at most once, and as reported.

    Without folders, a writer whose table is dropped right after its commit gets only the error about the drop.
    """
    landed: dict[int, Version] = {}
    gone: set[int] = set()
    for history in histories:
        for version in history:
            number = version.info.get(ATTEMPT)
            if number is not None:
                _require(number not in landed, f"attempt {number} landed twice")
                landed[number] = version
                if not has_folders and "silt.dropped" in history[-1].configuration:
                    gone.add(number)
    for attempt in attempts:
        found = landed.get(attempt.number)
        what = f"{attempt.statement.name} (attempt {attempt.number})"
        if attempt.outcome == COMMITTED:
            _require(found is not None, f"{what} says it is version {attempt.version}, and did not land")
            assert found is not None
            _require(found.landing.version == attempt.version, f"{what} is not the version that it says: {found.name}")
        elif attempt.outcome in (FAILED, None) and attempt.number not in gone:
            _require(found is None, f"{what} said that nothing landed")


def _check_serial(history: Sequence[Version], attempts: Sequence[Attempt]) -> None:
    """Checks that each version is its statement's result on the previous one, as the isolation level requires."""
    for before, after in itertools.pairwise(history):
        number = after.info.get(ATTEMPT)
        if number is None:
            _require(before.files == after.files, f"files changed: {after.name}")
            continue
        _check_step(before, after, attempts[number])


def _check_step(before: Version, after: Version, attempt: Attempt) -> None:
    statement, what = attempt.statement, f"{attempt.statement.name}: {after.name}"
    if statement.keeps_total:
        _require(sum(before.rows.values()) == sum(after.rows.values()), f"the sum changed by {what}")
    if statement.txn is not None:
        _require(statement.txn in after.transactions, f"no identifier is recorded by {what}")
    if statement.property == COUNT:
        _require(after.configuration[COUNT] == str(len(before.rows)), f"rows were overlooked by {what}")
    others = [{k: v for k, v in each.configuration.items() if k != statement.property} for each in (before, after)]
    _require(others[0] == others[1], f"other properties changed by {what}")
    if attempt.level is IsolationLevel.SERIALIZABLE:
        _require(after.rows == statement.apply(before.rows), f"not as if it ran alone: {what}")
    elif statement.by_row:
        _check_files(after, statement, what)


def _check_files(after: Version, statement: Statement, what: str) -> None:
    """Checks, for the lower levels, that the statement's effect is right on the rows of the files that it rewrote."""
    old = _merged(after.removed)
    expected = statement.apply(old)
    _require(_merged(after.added) == expected, f"rows of its own files went wrong: {what}")


def _merged(files: Mapping[str, Mapping[int, int]]) -> dict[int, int]:
    return {key: amount for rows in files.values() for key, amount in rows.items()}


def _check_look(look: Look, by_id: Mapping[str, Sequence[Version]]) -> None:
    """Checks that all versions that were read were the newest at one moment while the statement ran."""
    first, last = (look.began, look.ended) if look.is_newest else (0, look.ended)
    for seen in look.seen:
        history = by_id[seen.table_id]
        _require(seen.version < len(history), f"version {seen.version} was read before it was")
        version = history[seen.version]
        _require(seen.rows == version.rows, f"read other rows than are in {version.name}")
        _require(seen.transactions == version.transactions, f"read other identifiers than are in {version.name}")
        first = max(first, version.landing.at)
        if look.is_newest and seen.version + 1 < len(history):
            last = min(last, history[seen.version + 1].landing.at - 1)
    versions = [(seen.table_id[:4], seen.version) for seen in look.seen]
    _require(first <= last, f"no moment between steps {look.began} and {look.ended} had these versions: {versions}")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise Violation(what)

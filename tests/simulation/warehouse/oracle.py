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

from dbt.adapters.silt.engine.kernel.table.properties import IsolationLevel
from tests.simulation.rows_table import DELETED, VECTOR_FILE
from tests.simulation.warehouse.statements import COUNT, Statement
from tests.simulation.warehouse.world import Landing, World

ATTEMPT = "attempt"
"""The field of `commitInfo` that names the attempt at a statement."""

IN_COMMIT = "delta.enableInCommitTimestamps"

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
    """A table at one version: rows by file, and the rest of the log's state.

    Attributes:
        vectors: the files of deletion vectors, by data file.
        vectors_removed: the data files whose deletion vector this version has removed or replaced.
        is_data_change: whether readers of changes look into a file that this version adds or removes.
    """

    landing: Landing
    info: Mapping[str, Any]
    table_id: str
    files: dict[str, dict[int, int]]
    configuration: Mapping[str, str]
    transactions: frozenset[str]
    features: frozenset[str] = frozenset()
    vectors: dict[str, str] = field(default_factory=dict)
    vectors_removed: set[str] = field(default_factory=set)
    is_data_change: bool = False
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
            for path in (*version.files, *version.vectors.values()):
                there = world.storage.status(f"{version.landing.folder}/{path}") is not None
                _require(there, f"{path}, which {version.name} needs, is deleted")


def _replayed(world: World, log: int) -> Iterator[Version]:
    """Yields the versions of one log, each checked against the previous version."""
    found = _until_drop(each for each in world.landings if each.log == log and not each.is_stray)
    landings = sorted(found, key=lambda each: each.version)
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
        if is_end(landing):
            return


def is_end(landing: Landing) -> bool:
    """Returns whether the commit dropped its table."""
    return b'"silt.dropped"' in landing.data


def _next(world: World, landing: Landing, last: Version | None) -> Version:
    version = Version(landing, {}, "", {}, {}, frozenset())
    if last is not None:
        version = Version(landing, {}, last.table_id, dict(last.files), last.configuration, last.transactions)
        version.features, version.vectors = last.features, dict(last.vectors)
    actions = [next(iter(json.loads(line).items())) for line in landing.data.decode().splitlines()]
    for kind, action in sorted(actions, key=lambda each: each[0] == "add"):  # a new vector removes and adds a file
        if kind == "commitInfo":
            version.info = action
        elif kind == "protocol":
            version.features = frozenset(action.get("writerFeatures") or ())
        elif kind == "metaData":
            version.table_id, version.configuration = action["id"], action["configuration"]
        elif kind == "txn":
            _require(action["appId"] not in version.transactions, f"{action['appId']} is applied twice")
            version.transactions |= {action["appId"]}
        elif kind == "remove":
            _remove(version, action)
            version.is_data_change |= action["dataChange"]
        elif kind == "add":
            _add(version, action, json.loads(world.contents[action["path"]]))
            version.is_data_change |= action["dataChange"]
    _check_time(version, last, actions)
    return version


def _remove(version: Version, action: Mapping[str, Any]) -> None:
    path = action["path"]
    _require(path in version.files, f"{path} is not there to remove: {version.name}")
    version.removed[path] = version.files.pop(path)
    vector = version.vectors.pop(path, None)
    if vector is not None:
        version.vectors_removed.add(path)


def _add(version: Version, action: Mapping[str, Any], rows: Sequence[tuple[int, int]]) -> None:
    """Adds a file, without the rows that its deletion vector should delete."""
    path, tags = action["path"], action.get("tags") or {}
    _require(path not in version.files, f"{path} is added twice: {version.name}")
    if action.get("deletionVector"):
        version.vectors[path] = tags[VECTOR_FILE]
    deleted = json.loads(tags.get(DELETED, "[]"))
    version.files[path] = version.added[path] = dict(row for at, row in enumerate(rows) if at not in deleted)


def _check_time(version: Version, last: Version | None, actions: Sequence[tuple[str, Any]]) -> None:
    """Each commit of a table with in-commit timestamps has one, later than the version before it."""
    if version.configuration.get(IN_COMMIT) != "true":
        return
    time = version.info.get("inCommitTimestamp") or 0
    _require(actions[0][0] == "commitInfo" and time > 0, f"no in-commit timestamp: {version.name}")
    before = 0 if last is None else last.info.get("inCommitTimestamp") or 0
    _require(time > before, f"not later than the version before it: {version.name}")
    if last is not None and last.configuration.get(IN_COMMIT) != "true":
        stated = version.configuration.get("delta.inCommitTimestampEnablementVersion")
        _require(stated == str(version.landing.version), f"states the version {stated}: {version.name}")


def _check_attempts(histories: Sequence[Sequence[Version]], attempts: Sequence[Attempt], has_folders: bool) -> None:
    """Checks that each attempt was committed at most once, and as reported.

    Without folders, a writer whose table is dropped right after its commit gets only the error about the drop.
    """
    by_attempt = landed(histories)
    dropped = [history for history in histories if "silt.dropped" in history[-1].configuration]
    gone = set() if has_folders else landed(dropped).keys()
    for attempt in attempts:
        found = by_attempt.get(attempt.number)
        what = f"{attempt.statement.name} (attempt {attempt.number})"
        if attempt.outcome == COMMITTED:
            _require(found is not None, f"{what} says it is version {attempt.version}, and did not land")
            assert found is not None
            _require(found.landing.version == attempt.version, f"{what} is not the version that it says: {found.name}")
        elif attempt.outcome in (FAILED, None) and attempt.number not in gone:
            _require(found is None, f"{what} said that nothing landed")


def landed(histories: Iterable[Sequence[Version]]) -> dict[int, Version]:
    """Returns the version of each attempt that was committed, by its number."""
    found: dict[int, Version] = {}
    for version in itertools.chain.from_iterable(histories):
        number = version.info.get(ATTEMPT)
        if number is not None:
            _require(number not in found, f"attempt {number} landed twice")
            found[number] = version
    return found


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
    _require(not (statement.moves_rows and after.is_data_change), f"readers of changes see moved rows: {what}")
    if statement.txn is not None:
        _require(statement.txn in after.transactions, f"no identifier is recorded by {what}")
    if COUNT in statement.properties:
        _require(after.configuration[COUNT] == str(len(before.rows)), f"rows were overlooked by {what}")
    others = [
        {k: v for k, v in each.configuration.items() if k not in statement.properties} for each in (before, after)
    ]
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

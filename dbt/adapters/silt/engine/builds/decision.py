"""The decision whether a table already holds what a build would write: a pure function of facts and present states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from dbt.adapters.silt.engine.kernel.log.builds import Build, BuildFacts, Effect, TableState
from dbt.adapters.silt.engine.kernel.printable import short_id


@dataclass(frozen=True)
class LastBuild:
    """The newest build of a table by its owner.

    Attributes:
        table: the table's name, for messages.
        version: the version that the build committed.
        run_id: the logical run of the build, if it has one.
        changed_data: whether the build added or removed rows.
        changed_since: what another commit has changed in the table since, for messages; None if nothing.
        at_ms: the time of the commit, in milliseconds since 1970-01-01 UTC.
        target: the target of the dbt profile, if a dbt command made the build.
        has_ended: whether the work that must follow the build has been done.
    """

    table: str
    version: int
    facts: BuildFacts
    run_id: str | None = None
    changed_data: bool = True
    changed_since: str | None = None
    at_ms: int = 0
    target: str | None = None
    has_ended: bool = True


@dataclass(frozen=True)
class PresentTable:
    """A table that the build read, as it is now.

    Attributes:
        state: its newest version.
        last_change: the newest version that changed data after the version that the build read, or that version;
            None if the log no longer says so.
        changed_ms: the time of that version's commit, in milliseconds since 1970-01-01 UTC; 0 if nothing changed.
        doubt: why the version of the number that the build read may be another one, if so, to continue its name.
    """

    state: TableState
    last_change: int | None
    changed_ms: int = 0
    doubt: str | None = None


@dataclass(frozen=True)
class Present:
    """The inputs of a build as they are now.

    Attributes:
        tables: full name -> the table; None if no table has the name.
        definitions: full name -> the fingerprint of the view or function; None if it does not exist.
        files: path -> the fingerprint of the list of files; None if it is unknown. Paths that the code does not
            name are missing.
        day: today's date in the time zone of the sessions.
    """

    tables: Mapping[str, PresentTable | None] = field(default_factory=dict)
    definitions: Mapping[str, str | None] = field(default_factory=dict)
    files: Mapping[str, str | None] = field(default_factory=dict)
    day: str | None = None


@dataclass(frozen=True)
class Reused:
    """The table holds what the build would write: its version `version`, of the run `run_id`.

    Attributes:
        waiting: the changes that do not require a build yet, because they are within the build's tolerance.
    """

    table: str
    version: int
    run_id: str | None = None
    waiting: tuple[str, ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        return (str(self),)

    def __str__(self) -> str:
        run = f" (run {short_id(self.run_id)})" if self.run_id else ""
        if self.waiting:
            return f"built within lag_tolerance as {self.table}@v{self.version}{run}: {', '.join(self.waiting)}"
        return f"unchanged since {self.table}@v{self.version}{run}"


@dataclass(frozen=True)
class Cloned:
    """The last build of the node in another target, `source`, holds what the build would write, and is cloned."""

    source: LastBuild

    @property
    def reasons(self) -> tuple[str, ...]:
        return (str(self),)

    def __str__(self) -> str:
        run = f", run {short_id(self.source.run_id)}" if self.source.run_id else ""
        return f"unchanged since {self.source.table}@v{self.source.version} (target {self.source.target}{run})"


@dataclass(frozen=True)
class Built:
    """The table must be built, for these reasons, the most important first."""

    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return ", ".join(self.reasons)


Decision: TypeAlias = Reused | Built


def decide(build: Build, last: LastBuild | None, present: Present) -> Decision:
    """Decides whether the table must be built.

    Args:
        last: the newest build of the table by the same owner; None if its log has no such build.
        present: the present states of the inputs of that build.
    """
    if last is None:
        return Built(("no earlier build has recorded its inputs",))
    reasons = tuple(_reasons(build, last, present))
    new_rows = tuple(_changed_rows(last, present))
    if not reasons or (reasons == new_rows and _is_tolerated(build, last, present)):
        return Reused(last.table, last.version, last.run_id, reasons)
    return Built(reasons)


def _is_tolerated(build: Build, last: LastBuild, present: Present) -> bool:
    """Returns whether the last build is recent enough to keep its rows although its inputs have other rows now.

    The times of commits decide first: the tolerance ends at the latest with a change that was committed so much later
    than the build. This machine's clock can only end the tolerance earlier; if the clock is behind the commit, nothing
    is tolerated.
    """
    changes = (each.changed_ms for each in present.tables.values() if each is not None)
    passed = max(build.at_ms, *changes, 0) - last.at_ms
    return build.at_ms >= last.at_ms and passed < build.tolerance_ms


def _changed_rows(last: LastBuild, present: Present) -> Iterator[str]:
    """Yields the reasons of the tables of which nothing but rows changed."""
    for name, read in last.facts.tables.items():
        now = present.tables.get(name)
        if name != last.table and now is not None and now.state.schema == read.schema:
            if now.state.table_id == read.table_id and now.last_change not in (None, read.version):
                yield _changed_version(name, read, now)


def _changed_version(name: str, read: TableState, now: PresentTable) -> str:
    return f"{name} changed (v{read.version} -> v{now.last_change})"


def _reasons(build: Build, last: LastBuild, present: Present) -> Iterator[str]:
    facts = last.facts
    if last.changed_since is not None:
        yield last.changed_since
    elif not last.has_ended:
        yield "not all of its hooks have run since its last build"
    if facts.code != build.code:
        yield "its compiled code or its configs changed"
    if facts.environment != build.environment:
        yield "the versions or settings of dbt-silt or Spark changed"
    yield from dict.fromkeys((*build.unknown, *facts.unknown))
    if facts.day is not None and facts.day != present.day:
        yield f"it depends on the date, which was {facts.day}"
    yield from _of_the_table_itself(build, last)
    yield from _changed_tables(last, present)
    yield from _changed(facts.definitions, present.definitions, "{} has a new definition")
    others = [path for path in facts.files if path not in present.files]
    yield from (f"it reads other files: its code does not name {path}" for path in others)
    known = {path: each for path, each in facts.files.items() if path in present.files}
    yield from _changed(known, present.files, "the files of {} changed")


def _of_the_table_itself(build: Build, last: LastBuild) -> Iterator[str]:
    """Yields a reason if the build's result depends on the rows that the table had before.

    If the last build found nothing to change, this build finds the same table and the same inputs.
    """
    if not last.changed_data or build.effect is Effect.KEEPS:
        return
    if build.effect is Effect.ADDS:
        yield "it adds rows, and the last build changed the table"
    elif last.table in last.facts.tables:
        yield "it reads its own table, which the last build changed"


def _changed_tables(last: LastBuild, present: Present) -> Iterator[str]:
    for name, read in last.facts.tables.items():
        if name == last.table:
            continue
        now = present.tables.get(name)
        if now is None:
            yield f"{name} may have changed: it is no longer a table of this warehouse"
        elif now.state.table_id != read.table_id:
            yield f"{name} was replaced"
        elif now.last_change is None:
            yield f"{name} may have changed: its log no longer contains all commits since v{read.version}"
        elif now.last_change != read.version:
            yield _changed_version(name, read, now)
        elif now.doubt is not None:
            yield f"{name} {now.doubt}"
        elif now.state.schema != read.schema:
            yield f"{name} has other columns"


def _changed(recorded: Mapping[str, str | None], now: Mapping[str, str | None], text: str) -> Iterator[str]:
    for name, fingerprint in recorded.items():
        if fingerprint is None or now.get(name) != fingerprint:
            yield text.format(name)

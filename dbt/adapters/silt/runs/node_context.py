"""Keeps the state of the node that a thread runs: the units of work of its statements, and the tags of its Spark jobs.

The comment is the user's own text. It is added to the statement in dbt's log, to the commit and to the jobs, but not to
the parser's input: a `/*` in it would open a second comment, and its text, which differs from run to run, would turn
each statement into a new unit of work.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind, RelationName
from dbt.adapters.silt.lazy import lazy_module
from dbt.adapters.silt.records.units import RunContext, StatementScope, Unit, node_scope
from dbt.adapters.silt.runs.committed_work import CommittedWork

if TYPE_CHECKING:
    from dbt.adapters.silt.engine.catalog.catalog import Catalog
    from dbt.adapters.silt.engine.kernel.log.builds import Build, BuildFacts
    from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
    from dbt.adapters.silt.engine.sql import ast
    from dbt.adapters.silt.engine.statements.execute.affected_tables import Written
    from dbt.adapters.silt.runs.done_again import Decision
    from dbt.adapters.silt.runs.hook_effects import HookEffects
else:
    ast = lazy_module("dbt.adapters.silt.engine.sql.ast")


_WRITING_NODES = frozenset(("model", "seed", "snapshot", "function"))


@dataclass
class NodeContext:
    """The state of a thread's current node.

    Attributes:
        node: the node that dbt runs or compiles; None between nodes, in on-run hooks and in operations.
        named: for each of the next statements, in order, its named unit of work or None.
        scope: the hook that runs; each of its statements is a unit.
        has_own_materialization: whether a materialization of this adapter runs the node. The node names its write
            itself, and derives metadata changes from the table's current state, so a repetition of them does no harm.
        decision: the decision about its own write.
        committed: the units of work that it has done so far.
        tags: the node's tags.
        batch_id: the id of the batch, if the node is a batch of a microbatch model.
        ended: whether its materialization completed.
        failure: the reason why it was not written, if dbt has only logged the reason.
        own: its own write, as its materialization names it.
        hooks: the changes of its hooks, if it may be reused and they would then not run.
        built_because: the reasons why it is built although it may be reused.
        test: the query of a data test, as a build that writes no table, if its result may be reused.
        facts: the facts of that query, when it has run.
        audited: the tests that judge its own write, by their unique ids, in the order of the audits; empty if their
            verdict on its table may be another.
        looks: how often its code, or the code of its tests, has looked at relations or rows of the warehouse.
    """

    node: Any = None
    named: list[Unit | None] = field(default_factory=list)
    scope: StatementScope | None = None
    has_own_materialization: bool = False
    decision: Decision | None = None
    committed: CommittedWork = field(default_factory=CommittedWork)
    tags: tuple[str, ...] = ()
    batch_id: str | None = None
    ended: bool = False
    failure: str | None = None
    own: Unit | None = None
    hooks: HookEffects | None = None
    built_because: str | None = None
    test: Build | None = None
    facts: BuildFacts | None = None
    audited: tuple[str, ...] = ()
    looks: int = 0

    @property
    def is_writing_node(self) -> bool:
        """Whether it creates a relation or function; a test of any kind only reads existing data."""
        return self.node is not None and str(self.node.resource_type) in _WRITING_NODES

    @property
    def is_done_again(self) -> bool:
        """Whether this command repeats its own write, although an earlier command of the run has committed it."""
        return self.decision is not None and bool(self.decision.reasons)

    def versioned(self, unit: Unit) -> Unit:
        """Returns the unit of a statement on the node's own table with the version that repeats it with the node."""
        version = None if self.decision is None else self.decision.statements_version
        return unit if version is None else replace(unit, version=version)

    def is_unit(self, written: Written) -> bool:
        """Returns whether a statement with this effect is a unit of work."""
        return written.effect is ast.Effect.ROWS or self.scope is not None or not self.has_own_materialization


class StatementUnits:
    """Counts the occurrences of each statement in a dbt command, and remembers the units that it has met.

    Occurrence and text form the name of a unit without another name.
    """

    def __init__(self) -> None:
        self._occurrences: Counter[str] = Counter()
        self._met: set[str] = set()
        self._lock = threading.Lock()

    def next(self, scope: StatementScope, statement: str) -> Unit:
        """Returns the unit of a statement's next occurrence."""
        key = scope.key(statement)
        with self._lock:
            self._occurrences[key] += 1
            return scope.unit(statement, self._occurrences[key])

    def note_done(self, unit: Unit) -> None:
        """Notes that this command has done the unit, or has found it done."""
        with self._lock:
            self._met.add(unit.app_id)

    def own_write_already_done(self, unit: Unit, scope: StatementScope, log: DeltaLog) -> str | None:
        """Returns the node's own write if the table already holds it although the statement comes before it.

        Such a statement is late: run now, it would change the result of the write. A node's statements may differ from
        an earlier command's: the table may not have existed then, or their text may contain the time.
        """
        snapshot = log.snapshot()
        if scope.own_write is None or snapshot.holds(unit.txn):
            return None
        recorded = {app_id: each.version for app_id, each in snapshot.transactions.items()}
        with self._lock:
            earlier = {app_id: version for app_id, version in recorded.items() if app_id not in self._met}
        return scope.own_write.among(earlier)


def scope_of_node(context: RunContext, node: Any, full_refresh: bool, database: str) -> StatementScope:
    """Returns the scope of a node's statements that are neither its own write nor a hook's.

    Args:
        node: dbt's node.
        full_refresh: whether the command has the flag.
        database: the database of a node that names no database.
    """
    batch = getattr(node, "batch", None)
    model = {
        "unique_id": node.unique_id,
        "batch": {"id": batch.id, "event_time_end": batch.event_time_end} if batch else None,
    }
    return node_scope(context, model, str(table_of(node, database)), is_rebuilt(node, full_refresh))


def table_of(node: Any, database: str) -> RelationName:
    """Returns the node's own table."""
    return RelationName(node.database or database, node.schema, getattr(node, "alias", None) or node.name)


def is_rebuilt(node: Any, full_refresh: bool) -> bool:
    """Returns whether `--full-refresh` applies to the node: its own setting takes precedence; snapshots are kept."""
    if str(node.resource_type) == "snapshot":
        return False
    return full_refresh_of(node.config, full_refresh)


def full_refresh_of(config: Mapping[str, Any], full_refresh: bool) -> bool:
    """Returns a node's own setting, else the command's."""
    own = config.get("full_refresh")
    return full_refresh if own is None else bool(own)


def log_of(catalog: Catalog, name: RelationName | None) -> DeltaLog | None:
    """Returns the log of a table, or None if no table has that name."""
    entry = None if name is None else catalog.find(name)
    return catalog.table(entry.name) if entry is not None and entry.kind is RelationKind.TABLE else None


def job_tags(texts: Iterable[str | None]) -> tuple[str, ...]:
    """Returns the comments as tags of Spark's jobs, which are not empty and contain no comma; each once, in order."""
    written = (re.sub(r"\s*,\s*", "; ", " ".join(text.split())).strip() for text in texts if text)
    return tuple(dict.fromkeys(tag for tag in written if tag))

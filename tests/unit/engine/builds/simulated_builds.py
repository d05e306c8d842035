"""A warehouse reduced to the reuse decision: tables as lists of commits, nodes as functions of rows, and an oracle
that builds.

Nothing here has files, Spark or dbt. A node's build is a function of its code and of the rows of its inputs, so the
oracle can compute at any moment what a build would write.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from dbt.adapters.silt.engine.builds.decision import Built, Decision, LastBuild, Present, PresentTable, Reused, decide
from dbt.adapters.silt.engine.kernel.log.builds import Build, BuildFacts, Effect, TableState

Rows = tuple[tuple[object, ...], ...]
SOURCES = ("src.a", "src.b", "src.c")


@dataclass(frozen=True)
class Commit:
    """A commit of a table: its rows and columns after it, and whether it changed data."""

    rows: Rows
    schema: str
    changes_data: bool
    facts: BuildFacts | None = None
    run_id: str | None = None


@dataclass
class Table:
    """A table; the commits before `cleaned` are no longer in its log."""

    table_id: str
    commits: list[Commit] = field(default_factory=list)
    cleaned: int = 0

    @property
    def version(self) -> int:
        return len(self.commits) - 1

    @property
    def newest(self) -> Commit:
        return self.commits[-1]

    @property
    def state(self) -> TableState:
        return TableState(self.table_id, self.version, self.newest.schema)

    def add(self, rows: Rows, changes_data: bool = True, schema: str | None = None, **facts: object) -> None:
        columns = schema or (self.commits[-1].schema if self.commits else "id")
        self.commits.append(Commit(rows, columns, changes_data, **facts))  # type: ignore[arg-type]

    def holds(self, rows: Rows) -> bool:
        """Returns whether a build that writes these rows changes nothing, as `content.compared` does."""
        written = next((each for each in reversed(self.commits) if each.changes_data), self.commits[0])
        return written.rows == rows and written.schema == self.newest.schema

    def last_change(self, after: int) -> int | None:
        """Returns what the log says about changes of data after a version, as `freshness.last_change` does."""
        if self.version < after:
            return None
        for version in range(self.version, after, -1):
            if version < self.cleaned:
                return None
            if self.commits[version].changes_data:
                return version
        return after


@dataclass(frozen=True)
class Node:
    """A node: its inputs, through views or not, and the effect of its build.

    Attributes:
        reads: the tables and views that it names.
        effect: as in `Build`.
        uses: `day`, `chance` or nothing.
    """

    name: str
    reads: tuple[str, ...]
    effect: Effect = Effect.REPLACES
    uses: str = ""
    reads_itself: bool = False


NODES = (
    Node("m.plain", ("src.a",)),
    Node("m.joined", ("src.b", "v.view")),
    Node("m.merged", ("m.plain",), Effect.REPEATS),
    Node("m.appended", ("src.a",), Effect.ADDS),
    Node("m.newer", ("src.b",), Effect.ADDS, reads_itself=True),
    Node("m.repeated", ("src.b",), Effect.REPEATS, reads_itself=True),
    Node("m.daily", ("src.c",), uses="day"),
    Node("m.random", ("src.c",), uses="chance"),
    Node("m.below", ("m.joined", "m.merged")),
)


@dataclass
class Builds:
    """A project that is built repeatedly while its sources, its code and its tables change.

    Attributes:
        wrong: the reuses of nodes whose build would have written other rows.
        needless: the builds that wrote the rows that the table had, except of nodes whose rows depend on chance.
        reused, built: the numbers of decisions.
    """

    seed: int
    decide: Callable[[Build, LastBuild | None, Present], Decision] = decide
    wrong: list[str] = field(default_factory=list)
    needless: int = 0
    reused: int = 0
    built: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.tables: dict[str, Table] = {}
        self.view = ("src.c", 0)
        self.code = dict.fromkeys((node.name for node in NODES), 0)
        self.environment, self.day, self.ids, self.runs = 0, 1, 0, 0
        for name in SOURCES:
            self._create(name)

    def step(self) -> None:
        """Changes something, or builds the project."""
        self.random.choice((*self._changes(), self.build, self.build, self.build))()

    def build(self) -> None:
        """Builds the project: each node is reused or built, and a reuse is compared with the oracle."""
        self.runs += 1
        for node in NODES:
            decision = self.decide(self._wanted(node), self._last(node), self._present(node))
            table = self.tables.get(node.name)
            before = None if table is None else table.newest.rows
            after = self._rows(node)
            if isinstance(decision, Reused):
                self.reused += 1
                if before != after:
                    self.wrong.append(f"{node.name} in run {self.runs}: {decision}")
            else:
                assert isinstance(decision, Built)
                self.built += 1
                self.needless += before == after and node.effect is Effect.REPLACES and node.uses != "chance"
                self._write(node, after, before)

    # What a build does

    def _inputs(self, node: Node) -> tuple[str, ...]:
        return tuple(self.view[0] if name == "v.view" else name for name in node.reads)

    def _rows(self, node: Node) -> Rows:
        """The rows that the table has after a build now."""
        table = self.tables.get(node.name)
        own: Rows = table.newest.rows if table is not None else ()
        salt: tuple[object, ...] = (self.code[node.name], self.environment)
        salt += (self.view[1],) if "v.view" in node.reads else ()
        salt += (self.day,) if node.uses == "day" else ()
        salt += (self.random.random(),) if node.uses == "chance" else ()
        found = [
            (*salt, name, self.tables[name].newest.schema, *row)
            for name in self._inputs(node)
            for row in self.tables[name].newest.rows
        ]
        if node.effect is Effect.REPLACES:
            return tuple(found)
        if (
            node.reads_itself and node.effect is Effect.REPEATS
        ):  # a merge whose result depends on the number of its rows
            found = [(*row, min(len(own), 3)) for row in found]
        if node.effect is Effect.REPEATS:
            return tuple(sorted({*own, *found}, key=repr))
        new = [row for row in found if row not in own] if node.reads_itself else found
        return (*own, *new)

    def _write(self, node: Node, rows: Rows, before: Rows | None) -> None:
        read = {name: self.tables[name].state for name in self._inputs(node)}
        table = self.tables.get(node.name) or self._create(node.name, ())
        if node.reads_itself:
            read[node.name] = table.state
        replaces = node.effect is Effect.REPLACES
        changes = not table.holds(rows) if replaces else rows != before
        facts = BuildFacts(
            node.name,
            str(self.code[node.name]),
            str(self.environment),
            ("it uses rand()",) if node.uses == "chance" else (),
            str(self.day) if node.uses == "day" else None,
            tables=read,
            definitions={"v.view": repr(self.view)} if "v.view" in node.reads else {},
        )
        table.add(rows, changes, facts=facts, run_id=str(self.runs))

    # What the decision sees

    def _wanted(self, node: Node) -> Build:
        return Build(node.name, str(self.code[node.name]), str(self.environment), effect=node.effect)

    def _last(self, node: Node) -> LastBuild | None:
        table = self.tables.get(node.name)
        if table is None:
            return None
        for version in range(table.version, table.cleaned - 1, -1):
            commit = table.commits[version]
            if commit.facts is not None and commit.facts.owner == node.name:
                later = table.commits[version + 1 :]
                changed = any(each.changes_data or each.schema != commit.schema for each in later)
                since = f"{node.name} was changed" if changed else None
                return LastBuild(node.name, version, commit.facts, commit.run_id, commit.changes_data, since)
        return None

    def _present(self, node: Node) -> Present:
        last = self._last(node)
        facts = BuildFacts(node.name, "") if last is None else last.facts
        tables = {name: self._table(name, read) for name, read in facts.tables.items()}
        return Present(tables, dict.fromkeys(facts.definitions, repr(self.view)), {}, str(self.day))

    def _table(self, name: str, read: TableState) -> PresentTable | None:
        table = self.tables.get(name)
        if table is None:
            return None
        is_same = table.table_id == read.table_id
        return PresentTable(table.state, table.last_change(read.version) if is_same else None)

    # Changes

    def _changes(self) -> tuple[Callable[[], None], ...]:
        return (
            *(self._insert, self._delete, self._optimize, self._set_property, self._add_column, self._restore),
            *(self._replace, self._swap, self._change_code, self._change_view, self._upgrade, self._next_day),
            *(self._write_by_hand, self._clean_up, self._drop_own, self._rewrite_equal, self._roll_back),
        )

    def _create(self, name: str, rows: Rows | None = None) -> Table:
        self.ids += 1
        self.tables[name] = Table(f"id-{self.ids}")
        self.tables[name].add(((self.random.randrange(9),),) if rows is None else rows)
        return self.tables[name]

    def _source(self) -> Table:
        return self.tables[self.random.choice(SOURCES)]

    def _any(self) -> Table:
        return self.tables[self.random.choice(sorted(self.tables))]

    def _insert(self) -> None:
        table = self._source()
        table.add((*table.newest.rows, (self.random.randrange(9),)))

    def _delete(self) -> None:
        table = self._source()
        table.add(table.newest.rows[1:], changes_data=bool(table.newest.rows))

    def _optimize(self) -> None:
        table = self._any()
        table.add(table.newest.rows, changes_data=False)

    def _set_property(self) -> None:
        self._optimize()

    def _add_column(self) -> None:
        table = self._source()
        table.add(table.newest.rows, changes_data=False, schema=f"{table.newest.schema},x")

    def _restore(self) -> None:
        table = self._any()
        earlier = table.commits[self.random.randrange(table.cleaned, len(table.commits))]
        table.add(earlier.rows, schema=earlier.schema)

    def _roll_back(self) -> None:
        """Restores a node's table to the version before its last build."""
        table = self._any()
        if table.version > table.cleaned:
            earlier = table.commits[-2]
            table.add(earlier.rows, schema=earlier.schema)

    def _replace(self) -> None:
        """Drops a source and creates it again, with as many commits."""
        name = self.random.choice(SOURCES)
        versions = self.tables[name].version
        table = self._create(name)
        for _ in range(versions):
            table.add(table.newest.rows, changes_data=False)

    def _swap(self) -> None:
        one, other = self.random.sample(SOURCES, 2)
        self.tables[one], self.tables[other] = self.tables[other], self.tables[one]

    def _change_code(self) -> None:
        self.code[self.random.choice(NODES).name] = self.random.randrange(3)

    def _change_view(self) -> None:
        self.view = (self.random.choice(SOURCES), self.random.randrange(3))

    def _upgrade(self) -> None:
        self.environment = self.random.randrange(3)

    def _next_day(self) -> None:
        self.day += 1

    def _write_by_hand(self) -> None:
        table = self._any()
        table.add((*table.newest.rows, ("by hand",)))

    def _clean_up(self) -> None:
        """Runs OPTIMIZE, and cleans up the log up to that version or an earlier one."""
        table = self._any()
        table.add(table.newest.rows, changes_data=False)
        table.cleaned = self.random.choice((table.version, self.random.randrange(table.cleaned, len(table.commits))))

    def _drop_own(self) -> None:
        name = self.random.choice(NODES).name
        if name in self.tables and not any(name in node.reads for node in NODES):
            del self.tables[name]

    def _rewrite_equal(self) -> None:
        table = self._source()
        table.add(table.newest.rows)

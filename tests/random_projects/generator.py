"""Draws stories: the seed determines the project, the changes and the commands."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

from tests.random_projects.oracle import Oracle
from tests.random_projects.project import Node, Step, Story
from tests.random_projects.queries import EXTRAS, Query
from tests.random_projects.strategies import Undecided
from tests.random_projects.values import Condition, Row

BEGIN: Final = datetime(2026, 3, 1)
DAYS: Final = 3
"""The number of days before the first command that have rows."""
TEXTS: Final = (
    "a",
    "b",
    "é",
    "日本 🎉",
    "it's",
    'say "so"',
    "back\\slash",
    "a,b",
    "NaN",
    " pad ",
    "%{x}%",
    "tab\there",
)
STRATEGIES: Final = (
    "append", "merge", "merge", "merge", "delete+insert", "delete+insert",
    "insert_overwrite", "replace_where", "microbatch", "changed_keys", "changed_keys", "changes", "changes",
)  # fmt: skip
KINDS: Final = ("view", "ephemeral", "table", "incremental", "incremental", "incremental", "incremental", "snapshot")
ROOTS: Final = ("seed", "source", "file")
PROPERTIES: Final = (
    ("delta.columnMapping.mode", "name"),
    ("delta.enableChangeDataFeed", "true"),
    ("delta.enableTypeWidening", "true"),
    ("delta.enableRowTracking", "true"),
    ("delta.checkpointInterval", "2"),
)
_OF_CONTRACTS: Final = ("append_new_columns", "fail")
"""The values of `on_schema_change` that dbt accepts with a contract."""


_NEXT_SEED: Final = 1_000_000


@dataclass
class Generator:
    """Draws one story.

    Attributes:
        most: the highest number of models and snapshots.
        kinds, strategies, roots: those that it draws from.
        reuses: how likely a model without hooks that leave notes is reused.
        publishes: whether commands may be published at their end, if it is not drawn.
        corrects: how likely a held run is corrected by its next command.
        tests: whether nodes have tests.
    """

    seed: int
    steps: int = 5
    most: int = 9
    kinds: Sequence[str] = KINDS
    strategies: Sequence[str] = STRATEGIES
    roots: Sequence[str] = ROOTS
    reuses: float = 0.2
    chance: random.Random = field(init=False)
    upkeep: bool = field(init=False)
    _later: random.Random = field(init=False)
    nodes: dict[str, Node] = field(init=False, default_factory=dict)
    rows: dict[str, tuple[Row, ...]] = field(init=False, default_factory=dict)
    now: datetime = field(init=False, default=BEGIN)
    publishes: bool | None = None
    corrects: float = 0.5
    tests: bool = True
    filters: bool = field(init=False, default=False)
    by_variable: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        # Draws of its own, so that the seeds of older tests tell the same stories.
        self._later = random.Random(f"{self.seed}: audits, clustering and upkeep")
        self.upkeep = self._later.random() < 0.3
        drawn = self._likely(0.25)
        self.publishes = drawn if self.publishes is None else self.publishes
        self.filters = self._likely(0.25)
        self.by_variable = self._likely(0.5)

    def story(self) -> Story:
        for number in range(self.chance.randint(1, 3)):
            kind = self.chance.choice(self.roots)
            node = Node(f"{kind}_{number}", kind, tests=self._tests() if kind == "seed" else ())
            self.nodes[node.name] = self._cared_for(node) if kind == "seed" else node
        for number in range(self.chance.randint(2, self.most)):
            node = self._node(f"m{number}", self.chance.choice(self.kinds))
            self.nodes[node.name] = self._cared_for(node) if node.kind in ("table", "incremental") else node
        nodes = tuple(self.nodes.values())
        self.now = BEGIN + timedelta(days=DAYS, hours=20)
        self.rows = {name: self._rows(name) for name in self._roots()}
        first = Step(self.now, rows=dict(self.rows), run_id="r0", publish=self._publish())
        steps = [replace(first, filter=self._filter(), by_variable=self.by_variable)]
        oracle = Oracle(Story(self.seed, BEGIN, nodes, ()))
        for number in range(1, self.steps):
            oracle.change(steps[-1])
            try:
                oracle.run(steps[-1])
            except Undecided:
                steps.pop()
                break
            steps.append(self._step(f"r{number}", steps[-1], oracle))
        return Story(self.seed, BEGIN, nodes, tuple(steps), self.upkeep)

    def _cared_for(self, node: Node) -> Node:
        """The node, whose rows may be audited, and whose files may be clustered."""
        later = self._later
        if node.kind != "seed" and not node.partition_by and later.random() < 0.25:
            columns = later.sample(("k", "g", "d", "at", "n", "x"), later.randint(1, 3))
            node = replace(node, clustered=tuple(columns))
        if self.tests and later.random() < 0.2:
            tests = node.tests or (later.choice(("unique", "not_null")),)
            node = replace(node, tests=tests, audited=True)
            node = replace(node, quarantined=_may_be_quarantined(node) and later.random() < 0.5)
        return replace(node, enforced=node.contract and later.random() < 0.5)

    def _roots(self) -> list[str]:
        return [name for name, node in self.nodes.items() if node.kind in ("seed", "source", "file")]

    def _likely(self, probability: float) -> bool:
        return self.chance.random() < probability

    def _publish(self) -> str:
        return "after_tests" if self.publishes and self._likely(0.4) else "at_once"

    def _filter(self) -> Condition | None:
        return self._condition() if self.filters and self._likely(0.7) else None

    def _tests(self) -> tuple[str, ...]:
        likely = 0.2 if self.publishes else 0.05
        return tuple(name for name in ("unique", "not_null") if self.tests and self._likely(likely))

    # rows

    def _rows(self, name: str) -> tuple[Row, ...]:
        return tuple(self._row(name) for _ in range(self.chance.randint(3, 14)))

    def _row(self, name: str = "") -> Row:
        """A row of a seed or source; seeds have neither an empty string nor NaN."""
        some = self.chance
        is_source = name.startswith(("source", "file"))
        numbers = (0.0, -0.0, 1.5, -2.25, 1e300, 5e-324, *((math.nan,) if is_source else ()))
        day = self.now.date() - timedelta(days=some.randint(0, DAYS))
        moment = datetime.combine(day, time(some.randint(0, 18), some.choice((0, 59)), some.choice((0, 59))))
        moment += timedelta(microseconds=some.choice((0, 1, 999_999)) if is_source else 0)
        return {
            "k": self._or_null(some.randint(1, 15)),
            "g": self._or_null(some.choice((*TEXTS, "") if is_source else TEXTS), 0.15),
            "d": self._or_null(day, 0.1),
            "at": self._or_null(moment, 0.05),
            "n": self._or_null(Decimal(some.randint(-9999, 9999)) / 100),
            "x": self._or_null(some.choice(numbers), 0.1),
        }

    def _or_null(self, value: Any, probability: float = 0.06) -> Any:
        return None if self._likely(probability) else value

    def _changed(self, name: str) -> tuple[Row, ...]:
        """Some rows are gone, others have changed, others are new."""
        kept = []
        for row in self.rows[name]:
            if self._likely(0.15):
                continue
            new = self._row(name)
            column = self.chance.choice(("g", "n", "x", "d", "at"))
            kept.append({**row, column: new[column], "at": new["at"]} if self._likely(0.25) else row)
        kept += [self._row(name) for _ in range(self.chance.randint(0, 4))]
        return tuple(kept)

    # nodes

    def _node(self, name: str, kind: str) -> Node:
        node = Node(name, kind, tests=self._tests() if kind != "ephemeral" else ())
        if kind == "snapshot":
            return self._snapshot(name)
        node = replace(node, query=self._query(kind), hooks=kind != "ephemeral" and self._likely(0.2))
        if kind == "incremental":
            node = self._incremental(node)
        if kind in ("table", "incremental"):
            node = replace(node, vectors=self._likely(0.5), properties=self._properties(), differs=self._likely(0.3))
            if self._likely(0.15) and node.strategy != "microbatch":
                node = replace(node, purged=self._condition())
            if not node.partition_by and self._likely(0.15) and node.strategy != "insert_overwrite":
                node = replace(node, partition_by=(self.chance.choice(("d", "k", "g")),))
            if not node.hooks and self._likely(self.reuses):
                node = replace(node, reuse=True)
            node = self._with_hooks_that_read(node)
            if self._may_be_python(node) and self._likely(0.2):
                node = replace(node, python=True)
        return self._with_contract(node) if self._likely(0.15) else node

    def _with_hooks_that_read(self, node: Node) -> Node:
        """The model, some of whose hooks read other relations."""
        query = node.query
        assert query is not None
        others = [name for name, each in self.nodes.items() if each.kind not in ("source", "file", "ephemeral")]
        if node.kind == "table" and others and self._likely(0.25):
            node = replace(node, without=self.chance.choice(others))
        may_be_staged = node.kind == "table" or node.strategy in ("merge", "delete+insert", "insert_overwrite")
        first = self.nodes[query.inputs[0]].kind
        if may_be_staged and query.base not in ("changes", "upserts") and first in ("seed", "table", "incremental"):
            node = replace(node, staged=self._likely(0.2))
        return node

    def _with_contract(self, node: Node) -> Node:
        """The model with a contract, which its rows do not always break."""
        query = node.query
        if query is None or node.python or query.base == "upserts" or node.kind not in ("table", "incremental"):
            return node
        if node.strategy not in ("replace_where", "changed_keys"):
            query = replace(query, where=Condition("k", "is null", negated=self._likely(0.9)))
        policy = node.on_schema_change if node.on_schema_change in _OF_CONTRACTS else "append_new_columns"
        return replace(node, query=query, contract=True, on_schema_change=policy)

    def _properties(self) -> tuple[tuple[str, str], ...]:
        return tuple(each for each in PROPERTIES if self._likely(0.1))

    def _may_be_python(self, node: Node) -> bool:
        """Whether it may be a Python model, whose code has no Jinja, which hooks need."""
        query = node.query
        return (
            query is not None
            and query.base in ("scan", "union")
            and not query.newest
            and not node.hooks
            and not (node.without or node.staged)
            and node.purged is None
            and node.strategy not in ("changed_keys", "microbatch")
            and all(self.nodes[name].kind != "ephemeral" for name in query.inputs)
        )

    def _query(self, kind: str, among: Sequence[str] | None = None) -> Query:
        names = list(among or self.nodes)
        base = self.chance.choice(("scan", "scan", "group", "group", "union", "join"))
        inputs = tuple(self.chance.choice(names[-4:]) for _ in range(2 if base in ("union", "join") else 1))
        extras = self._extras(0.2)
        where = self._condition() if self._likely(0.4) else None
        return Query(base, inputs, where, extras, kind == "incremental" and self._likely(0.25))

    def _extras(self, probability: float) -> tuple[str, ...]:
        """Names of extras, each with a column of its own."""
        by_column = {EXTRAS[name].column.lower(): name for name in EXTRAS if self._likely(probability)}
        return tuple(by_column.values())

    def _condition(self) -> Condition:
        column = self.chance.choice(("k", "g", "d", "n", "x"))
        operator = self.chance.choice(("=", "<>", "<>", "<", ">=", "<=>", "is null"))
        row: Row = {}
        while row.get(column) is None:
            row = self._row()
        negated = self._likely(0.2) or operator in ("is null", "<=>")
        return Condition(column, operator, None if operator == "is null" else row[column], negated)

    def _incremental(self, node: Node) -> Node:
        strategy = self.chance.choice(self.strategies)
        query = node.query
        assert query is not None
        node = replace(node, strategy=strategy, on_schema_change=self._on_schema_change())
        if self._likely(0.15):
            node = replace(node, full_refresh=self._likely(0.3))
        if strategy == "changed_keys":
            tables = [name for name, each in self.nodes.items() if each.kind not in ("ephemeral", "file")]
            if not tables:
                return replace(node, strategy="append")
            query = replace(self._query("table", tables), where=None)
            return replace(node, query=query, key=("k",))
        if strategy == "microbatch":
            tables = [name for name in self.nodes if self.nodes[name].kind not in ("ephemeral", "view")]
            return replace(node, query=replace(self._query("table", tables), newest=False))
        if strategy == "changes":
            return self._changes(node)
        if strategy == "merge":
            return self._merge(node)
        if strategy == "delete+insert":
            predicate = self._condition() if self._likely(0.25) else None
            return replace(node, key=self._key(), predicate=predicate)
        if strategy == "insert_overwrite":
            return replace(node, partition_by=self.chance.choice((("d",), ("k",), ("d", "k"), ("g",), ("x",))))
        if strategy == "replace_where":
            condition = self._condition()
            where = condition if self._likely(0.8) else query.where
            return replace(node, predicate=condition, query=replace(query, where=where, newest=False))
        return node

    def _changes(self, node: Node) -> Node:
        """Reads the changes of a table that keeps its columns."""
        tables = [name for name, each in self.nodes.items() if each.kind in ("seed", "source", "table")]
        if not tables:
            return replace(node, strategy="append")
        unique = [name for name in tables if self._grouped(name)]
        query = node.query
        assert query is not None
        if unique and self._likely(0.6):
            query = Query("upserts", (self.chance.choice(unique),), extras=query.extras)
            return replace(node, strategy="merge", query=query, key=("k",))
        query = Query("changes", (self.chance.choice(tables),), query.where, query.extras)
        return replace(node, strategy="append", query=query)

    def _is_consumed(self, name: str) -> bool:
        return any(
            node.query is not None and node.query.base in ("changes", "upserts") and name in node.inputs
            for node in self.nodes.values()
        )

    def _merge(self, node: Node) -> Node:
        query = node.query
        assert query is not None
        base = "group" if query.base == "scan" and self._likely(0.5) else query.base
        node = replace(node, query=replace(query, base=base), key=self._key())
        payload = ("g", "d", "at", "n", "x")
        others = tuple(name for name in payload if name not in node.key)
        if self._likely(0.2):
            node = replace(node, updated=tuple(self.chance.sample(others, 2)))
        elif self._likely(0.2):
            node = replace(node, kept=(self.chance.choice(others),))
        if self._likely(0.2):
            node = replace(node, predicate=self._condition())
        if self._likely(0.2):
            node = replace(node, deletes="delete")
        if self._likely(0.1):
            node = replace(node, skipped=self.chance.choice(("matched", "not_matched")))
        if node.skipped != "matched" and self._likely(0.2):
            node = replace(node, changed_only=self.chance.choice(("n", "g", "x")))
        return node

    def _key(self) -> tuple[str, ...]:
        return self.chance.choice((("k",), ("k",), ("k", "g"), ("k", "d"), ("g", "d", "k"), ("k", "x")))

    def _on_schema_change(self) -> str:
        return self.chance.choice(("ignore", "append_new_columns", "append_new_columns", "sync_all_columns", "fail"))

    def _snapshot(self, name: str) -> Node:
        names = [each for each, node in self.nodes.items() if node.kind not in ("ephemeral", "snapshot")]
        grouped = list(filter(self._grouped, names))
        above = self.chance.choice(grouped if grouped and self._likely(0.8) else names)
        key = ("k",) if self._grouped(above) else self.chance.choice((("k",), ("k", "g"), ("k", "g", "n", "d")))
        checked = (
            tuple(self.chance.sample(("g", "d", "n", "x"), self.chance.randint(1, 3))) if self._likely(0.5) else ()
        )
        deletes = self.chance.choice(("ignore", "invalidate", "new_record"))
        node = Node(name, "snapshot", Query("scan", (above,)), key=key, checked=checked, deletes=deletes)
        return replace(node, timed=bool(checked) and self._likely(0.4), open_end=self._likely(0.3))

    def _grouped(self, name: str) -> bool:
        query = self.nodes[name].query
        return query is not None and query.base == "group"

    # steps

    def _step(self, run_id: str, before: Step, oracle: Oracle) -> Step:
        same = replace(before, rows={}, nodes={}, fault=0, restored=())
        if oracle.can_be_corrected() and self._likely(self.corrects):
            return self._correction(same)
        if before.verb != "retry" and self._likely(0.5 if before.publish == "after_tests" else 0.2):
            return replace(same, verb=self.chance.choice(("build", "run")), select=self._select(), full_refresh=False)
        rows = {name: self._changed(name) for name in self._roots() if self._likely(0.7)}
        if before.publish == "at_once" and before.verb != "retry" and self._likely(0.2):
            self.rows |= rows
            return replace(same, rows=rows)
        if oracle.can_be_retried() and self._likely(0.5):
            self.rows |= rows
            return replace(same, rows=rows, verb="retry")
        self.now += timedelta(days=self.chance.choice((0, 1, 1)), minutes=1)
        rows = {name: self._changed(name) for name in rows}
        self.rows |= rows
        verb = self.chance.choice(("build", "build", "build", "run", "run", "snapshot", "seed"))
        step = Step(
            self.now, rows, self._changed_nodes(), verb, self._select(), self._likely(0.1), run_id, self._publish()
        )
        step = replace(
            step,
            restored=tuple(name for name in rows if self._may_be_restored(name) and self._likely(0.2)),
            filter=self._filter() if self._likely(0.5) else before.filter,
            by_variable=self.by_variable,
        )
        if not self._likely(0.15):
            return step
        return replace(step, fault=self.chance.randint(1, 12), is_lost=self._likely(0.5))

    def _correction(self, same: Step) -> Step:
        """The held run again, after rows, code or both have changed."""
        rows = {name: self._changed(name) for name in self._roots() if self._likely(0.6)}
        self.rows |= rows
        nodes = self._changed_nodes() if self._likely(0.5) else {}
        return replace(same, rows=rows, nodes=nodes, verb="build", select=())

    def _may_be_restored(self, name: str) -> bool:
        """Whether it is a table of another program whose changes no model consumes."""
        return self.nodes[name].kind == "source" and not self._is_consumed(name)

    def _select(self) -> tuple[str, ...]:
        if self._likely(0.6):
            return ()
        names = [name for name, node in self.nodes.items() if node.kind not in ("source", "file", "ephemeral")]
        return tuple(
            self.chance.choice(("", "+")) + name + self.chance.choice(("", "+"))
            for name in self.chance.sample(names, min(len(names), 2))
        )

    def _changed_nodes(self) -> dict[str, Node]:
        changed = {}
        for name, node in self.nodes.items():
            if node.query is None or node.kind == "snapshot" or not self._likely(0.15):
                continue
            changed[name] = self._changed_node(node)
        self.nodes |= changed
        return changed

    def _changed_node(self, node: Node) -> Node:
        query = node.query
        assert query is not None
        what = self.chance.choice(("extras", "extras", "where", "policy", "kind"))
        if what == "kind" and not self._is_consumed(node.name) and query.base not in ("changes", "upserts"):
            return self._of_other_kind(node)
        if what == "extras" and not self._is_consumed(node.name):
            return replace(node, query=replace(query, extras=self._extras(0.4)))
        if (
            what == "where"
            and query.base not in ("changes", "upserts")
            and node.strategy not in ("replace_where", "changed_keys")
        ):
            return replace(node, query=replace(query, where=self._condition()))
        return (
            node
            if node.contract or node.kind == "ephemeral"
            else replace(node, on_schema_change=self._on_schema_change())
        )

    def _of_other_kind(self, node: Node) -> Node:
        """The model with another materialization."""
        query = node.query
        assert query is not None
        kind = self.chance.choice(("view", "table", "incremental"))
        if node.kind == "ephemeral" or (kind == "incremental" and node.strategy):
            return node
        if kind == "view":
            return Node(node.name, "view", replace(query, newest=False), tests=node.tests)
        if kind == "incremental":
            policy = "append_new_columns" if node.contract else self._on_schema_change()
            return replace(node, kind=kind, strategy="merge", key=self._key(), on_schema_change=policy)
        return replace(node, kind=kind)


def _may_be_quarantined(node: Node) -> bool:
    """Whether the documentation says which rows of the node are quarantined."""
    is_default_merge = node.strategy == "merge" and not (
        node.updated or node.kept or node.predicate or node.deletes or node.skipped or node.changed_only
    )
    is_whole = node.strategy in ("", "append", "delete+insert") or is_default_merge
    records = ("delta.enableChangeDataFeed", "true") in node.properties
    return node.kind != "seed" and is_whole and not (node.differs or node.reuse or node.contract or records)


def story(seed: int, steps: int = 5, most: int = 9) -> Story:
    return Generator(seed, steps, most).story()


def held_story(seed: int, steps: int, most: int) -> Story:
    """A story in which a run is held by failing tests or nodes, and corrected."""
    told = Generator(seed, steps, most, publishes=True, corrects=0.9).story()
    pairs = itertools.pairwise(told.steps)
    held = (new for old, new in pairs if old.run_id == new.run_id and new.publish == "after_tests")
    return told if any(each.rows or each.nodes for each in held) else held_story(seed + _NEXT_SEED, steps, most)


def overlapping_story(seed: int, steps: int, most: int) -> Story:
    """A story in which two processes run each `build` and `run` at the same time.

    Its nodes are repeatable and have no tests, so that the tables are those of one command after the other, however
    the two are mixed. The nodes of a run that is not published are not one transaction: an append of rows that an
    append has written, or a test that the second command fails, would tell the mixtures apart.
    """
    told = Generator(seed, steps, most, corrects=0, tests=False).story()
    changed = [node for step in told.steps for node in step.nodes.values()]
    if not all(map(_is_repeatable, (*told.nodes, *changed))):
        return overlapping_story(seed + _NEXT_SEED, steps, most)
    overlapping = (replace(each, overlaps=each.verb in ("build", "run") and not each.fault) for each in told.steps)
    return replace(told, steps=tuple(overlapping))


def _is_repeatable(node: Node) -> bool:
    adds_rows = node.strategy == "append" or (
        node.query is not None and (node.query.newest or node.query.base == "changes")
    )
    return not (adds_rows or node.purged or node.without or node.staged)

"""A plain interpreter of dbt commands: what each relation contains after a command, and how each node ends."""

from __future__ import annotations

import copy
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

from tests.random_projects import queries, strategies
from tests.random_projects.project import AUDIT, OPEN_END, Node, Step, Story
from tests.random_projects.queries import Query
from tests.random_projects.strategies import Refused, Rows, Undecided
from tests.random_projects.values import CORE, Condition, Row

SUCCESS: Final = "success"
ERROR: Final = "error"
SKIPPED: Final = "skipped"
PARTIAL: Final = "partial success"
_TESTS_FAILED: Final = "tests failed"
_VERBS: Final = {"seed": ("seed",), "snapshot": ("snapshot",), "run": ("view", "table", "incremental")}
_MAPPED_AND_RECORDED: Final = {"delta.columnMapping.mode", "delta.enableChangeDataFeed"}
_SNAPSHOT_COLUMNS: Final = {
    strategies.START: "timestamp",
    strategies.END: "timestamp",
    strategies.UPDATED: "timestamp",
    strategies.DELETED: "string",
}


Inputs: TypeAlias = tuple[tuple[Row, ...], ...]
"""The rows that a node has read, or those of a seed's file."""


@dataclass
class Relation:
    """A table with its rows, or a view with its query and those of the ephemeral models that it contains.

    Attributes:
        earlier: the rows of each earlier version of a table.
        consumed: the number of the version of the input whose changes the table has read last.
        partition_by: the columns by which the table was partitioned when it was created.
    """

    columns: dict[str, str]
    rows: list[Row] = field(default_factory=list)
    earlier: list[list[Row]] = field(default_factory=list)
    consumed: int | None = None
    partition_by: tuple[str, ...] = ()
    query: Query | None = None
    ephemeral: Mapping[str, Query] = field(default_factory=dict)


class Oracle:
    """The state of the warehouse.

    Attributes:
        nodes: the current code.
        rows: the current rows of seeds and sources.
        relations: the relations of the schema of the target, and the sources.
        last: the last command, and how its nodes ended.
    """

    def __init__(self, story: Story) -> None:
        self.nodes = {node.name: node for node in story.nodes}
        self.begin = story.begin
        self.rows: dict[str, tuple[Row, ...]] = {}
        self.relations: dict[str, Relation] = {}
        self._done: dict[tuple[str, ...], Inputs | None] = {}
        self._failed: dict[str, set[str]] = defaultdict(set)
        self._again: set[str] = set()
        self._partly: set[str] = set()
        self._branches: dict[str, tuple[dict[str, Relation], dict[tuple[str, ...], Inputs | None]]] = {}
        self._incorrigible: set[str] = set()
        self._standing: dict[str, set[str]] = defaultdict(set)
        self._filter: Condition | None = None
        self.last: tuple[Step, dict[str, str]] | None = None

    def change(self, step: Step) -> None:
        """Applies the changes before the command."""
        self.nodes |= step.nodes
        self.rows |= step.rows
        for name, rows in step.rows.items():
            if self.nodes[name].kind in ("source", "file"):
                self._put(name, Relation(dict(CORE), list(rows)))

    def run(self, step: Step) -> dict[str, str]:
        """Runs the command; returns how each node ended."""
        typed, tested_again = step, set[str]()
        self._partly = set()
        if step.verb == "retry":
            step, tested_again = self._retried()
        self._filter = step.filter
        published = copy.deepcopy((self.relations, self._done))
        if step.publish == "after_tests" and step.run_id in self._branches:
            if typed.select and typed.verb != "retry" and self._standing[step.run_id]:
                raise Undecided("a part of a held run, which adds the nodes that it needs and that have not run")
            self._continue(step)
        ends = self._ends(step, tested_again)
        self._note_failures(step, ends, tested_again)
        if step.publish == "after_tests" and self._standing[step.run_id]:
            self._branches[step.run_id] = (self.relations, self._done)
            self.relations, self._done = published
        else:
            self._incorrigible.add(step.run_id)
        if step.full_refresh:
            self._incorrigible.add(step.run_id)
        self.last = (step, ends)
        return {
            name: SUCCESS if end == _TESTS_FAILED else end for name, end in ends.items() if name not in tested_again
        }

    def _continue(self, step: Step) -> None:
        """Continues a held run: its changes are on its branch. After a correction the whole run ends as if it had begun
        after the correction, because nodes that are not built again have read what they would read now.
        """
        branch = self._branches.pop(step.run_id)
        if not (step.rows or step.nodes):
            self.relations, self._done = branch
            return
        if step.select or step.verb != "build":
            raise Undecided("a correction that does not build the whole project")
        self._failed.pop(step.run_id, None)

    def can_be_corrected(self) -> bool:
        """Whether the last command has left its run held, which has published nothing before, nor refreshed a table."""
        if self.last is None:
            return False
        run_id = self.last[0].run_id
        return run_id in self._branches and run_id not in self._incorrigible

    def _note_failures(self, step: Step, ends: Mapping[str, str], tested_again: set[str]) -> None:
        """Notes the nodes and the tests of the run that have failed, or have not run, without a later success."""
        standing = self._standing[step.run_id]
        for name, end in ends.items():
            has_run = end in (SUCCESS, _TESTS_FAILED)
            if name not in tested_again:
                (standing.discard if has_run else standing.add)(name)
            if step.verb == "build" and self.nodes[name].tests:
                (standing.discard if end == SUCCESS else standing.add)(f"tests of {name}")

    def _retried(self) -> tuple[Step, set[str]]:
        """The command before, for the nodes that did not succeed; and the nodes whose tests alone failed."""
        assert self.last is not None
        before, ends = self.last
        left = tuple(name for name, end in ends.items() if end != SUCCESS)
        again = {name for name in left if ends[name] == _TESTS_FAILED}
        self._partly = {name for name in left if ends[name] == PARTIAL}
        return replace(before, rows={}, nodes={}, select=left), again

    def _ends(self, step: Step, tested_again: set[str]) -> dict[str, str]:
        ends: dict[str, str] = {}
        nodes = self.selected(step)
        if nodes:
            self.relations.setdefault(AUDIT, Relation({"event": "string"}))
        failed = self._failed[step.run_id]
        led_to = failed.union(*(self._reached(name, lambda each: self.nodes[each].above) for name in failed))
        self._again = set()
        for node in nodes:
            if any(ends.get(name, SUCCESS) != SUCCESS for name in self._above(node, nodes)):
                ends[node.name] = SKIPPED
                continue
            ends[node.name] = SUCCESS if node.name in tested_again else self._end(node, step, node.name in led_to)
            if ends[node.name] == SUCCESS and step.verb == "build" and self._failed_tests(node):
                ends[node.name] = _TESTS_FAILED
        failed -= {name for name, end in ends.items() if end != SKIPPED}
        failed |= {name for name, end in ends.items() if end not in (SUCCESS, SKIPPED)}
        return ends

    def selected(self, step: Step) -> list[Node]:
        """The nodes that the command runs, each after its inputs."""
        names: set[str] = set()
        for word in step.select or self.nodes:
            name = word.strip("+")
            names.add(name)
            names |= self._reached(name, lambda node: self.nodes[node].above) if word.startswith("+") else set()
            names |= self._reached(name, self._children) if word.endswith("+") else set()
        kinds = _VERBS.get(step.verb, ("seed", "snapshot", *_VERBS["run"]))
        return [node for node in self.nodes.values() if node.name in names and node.kind in kinds]

    def can_be_retried(self) -> bool:
        """Whether the last command left something to do, and has published what it did."""
        if self.last is None or self.last[0].publish != "at_once":
            return False
        return bool(set(self.last[1].values()) - {SUCCESS})

    def _children(self, name: str) -> tuple[str, ...]:
        return tuple(node.name for node in self.nodes.values() if name in node.above)

    def _reached(self, name: str, following: Callable[[str], tuple[str, ...]]) -> set[str]:
        found: set[str] = set()
        left = [name]
        while left:
            for each in following(left.pop()):
                if each not in found:
                    found.add(each)
                    left.append(each)
        return found

    def _above(self, node: Node, run: Sequence[Node]) -> Iterator[str]:
        """The nodes whose failure skips this one: its inputs, and those of inputs that are ephemeral or do not run."""
        for name in node.above:
            yield name
            if self.nodes[name].kind == "ephemeral" or self.nodes[name] not in run:
                yield from self._above(self.nodes[name], run)

    def _failed_tests(self, node: Node) -> bool:
        return bool(node.tests) and _fail(node.tests, self.contents(node.name))

    def contents(self, name: str, window: tuple[datetime, datetime] | None = None) -> list[Row]:
        """The rows of a relation of the warehouse; those in a window of their `at` if one is given.

        Raises:
            Refused: the relation is missing.
        """
        relation = self.relations.get(name)
        if relation is None:
            raise Refused(f"{name} is missing")
        rows = relation.rows
        if relation.query is not None:
            rows = relation.query.rows(self._reader(relation.ephemeral))
        if window is None:
            return rows
        return [row for row in rows if row["at"] is not None and window[0] <= row["at"] < window[1]]

    def _reader(
        self, ephemeral: Mapping[str, Query], window: tuple[datetime, datetime] | None = None, node: Node | None = None
    ) -> Callable[[str], list[Row]]:
        def rows_of(name: str) -> list[Row]:
            if node is not None and node.staged and name == node.inputs[0]:
                return self.contents(node.stage)
            if name in ephemeral:
                return ephemeral[name].rows(rows_of)
            return self.contents(name, window)

        return rows_of

    def _ephemeral(self, node: Node) -> dict[str, Query]:
        """The queries of the ephemeral models that a node contains."""
        found: dict[str, Query] = {}
        for name in node.inputs:
            above = self.nodes[name]
            if above.kind == "ephemeral" and above.query is not None:
                found |= {name: above.query, **self._ephemeral(above)}
        return found

    def _end(self, node: Node, step: Step, is_led_to: bool) -> str:
        try:
            return self._built(node, step, is_led_to)
        except Refused:
            return ERROR

    def _built(self, node: Node, step: Step, is_led_to: bool) -> str:
        self._hook("pre", node, step)
        self._stage(node, step)
        unit = (step.run_id, node.name)
        if unit in self._done and self._is_done_again(node, self._done[unit], is_led_to):
            self._again.add(node.name)
        if node.strategy == "microbatch" and node.kind == "incremental":
            end = self._batches(node, step)
        elif node.kind != "view" and unit in self._done and node.name not in self._again:
            end = SUCCESS
        else:
            self._write(node, step)
            end = SUCCESS
        if self._done.get(unit) is None or node.name in self._again:
            self._done[unit] = self._read(node)
        if end == SUCCESS:
            self._purge(node, step)
            self._delete_keys(node, step)
            self._hook("post", node, step)
        return end

    def _purge(self, node: Node, step: Step) -> None:
        """Runs the post-hook that deletes rows."""
        unit = (step.run_id, node.name, "purge")
        if node.purged is None or (unit in self._done and node.name not in self._again):
            return
        self._done[unit] = None
        old = self.relations[node.name]
        kept = [row for row in old.rows if node.purged.of(row) is not True]
        self._put(node.name, replace(old, rows=kept))

    def _stage(self, node: Node, step: Step) -> None:
        """Runs the pre-hook that copies the first input."""
        unit = (step.run_id, node.name, "stage")
        if not node.staged or unit in self._done:
            return
        rows = self.contents(node.inputs[0])
        self._done[unit] = None
        self._put(node.stage, Relation(dict(self.relations[node.inputs[0]].columns), list(rows)))

    def _delete_keys(self, node: Node, step: Step) -> None:
        """Runs the post-hook that deletes the keys of another relation."""
        unit = (step.run_id, node.name, "without")
        if not node.without or (unit in self._done and node.name not in self._again):
            return
        keys = {row["k"] for row in self.contents(node.without)} - {None}
        self._done[unit] = None
        old = self.relations[node.name]
        self._put(node.name, replace(old, rows=[row for row in old.rows if row["k"] not in keys]))

    def _is_done_again(self, node: Node, before: Inputs | None, is_led_to: bool) -> bool:
        """Whether a finished node led to a failure or is below a repeated node, has changed, and is repeatable."""
        if not (is_led_to or self._again.intersection(self._tables(node))) or not _is_repeatable(node):
            return False
        if node.staged:
            return False
        return before is not None and _as_counters(before) != _as_counters(self._read(node))

    def _tables(self, node: Node) -> Iterator[str]:
        """The nodes whose tables a node reads, also through views."""
        for name in node.inputs:
            yield name
            if self.nodes[name].kind in ("ephemeral", "view"):
                yield from self._tables(self.nodes[name])

    def _read(self, node: Node) -> Inputs:
        if node.kind == "seed":
            return (self.rows[node.name],)
        reader = self._reader(self._ephemeral(node))
        return tuple(tuple(reader(name)) for name in node.inputs)

    def _hook(self, when: str, node: Node, step: Step) -> None:
        unit = (step.run_id, node.name, when)
        if node.hooks and unit not in self._done:
            self._done[unit] = None
            self.relations[AUDIT].rows.append({"event": f"{when} {node.name}"})

    def _write(self, node: Node, step: Step) -> None:
        if node.kind == "seed":
            rows = list(self.rows[node.name])
            _judge(node, rows)
            self._put(node.name, Relation(dict(CORE), rows))
            return
        query, ephemeral = node.query, self._ephemeral(node)
        assert query is not None
        if node.kind == "snapshot":
            self._snapshot(node, step)
            return
        if node.kind == "view":
            query.rows(self._reader(ephemeral))
            self.relations[node.name] = Relation(query.columns, query=query, ephemeral=ephemeral)
            return
        if node.kind == "incremental" and node.strategy == "changed_keys" and any(map(self._is_of_files, node.inputs)):
            raise Refused("the rows of single keys of files are not known")
        old = self._existing(node, step)
        if query.base in ("changes", "upserts"):
            self._consume(node, old, query)
            return
        new = query.rows(self._reader(ephemeral, node=node), old.rows if old and node.kind == "incremental" else None)
        if node.kind == "table" and not node.python and self._filter:
            new = [row for row in new if self._filter.of(row) is True]
        self._store(node, old, query, new, strategies.STRATEGIES.get(node.strategy))

    def _is_of_files(self, name: str) -> bool:
        """Whether reading a relation reads files."""
        if name in self.nodes and self.nodes[name].kind == "file":
            return True
        relation = self.relations.get(name)
        if relation is None or relation.query is None:
            return False
        inner = [each for query in (relation.query, *relation.ephemeral.values()) for each in query.inputs]
        return any(self._is_of_files(each) for each in inner if each not in relation.ephemeral)

    def _existing(self, node: Node, step: Step) -> Relation | None:
        """The table that an incremental run changes."""
        old = self.relations.get(node.name)
        refreshes = step.full_refresh if node.full_refresh is None else node.full_refresh
        is_changed = node.kind == "incremental" and not refreshes and old is not None and old.query is None
        return old if is_changed else None

    def _store(
        self,
        node: Node,
        old: Relation | None,
        query: Query,
        new: list[Row],
        strategy: Callable[[Node, list[Row], list[Row]], list[Row]] | None,
    ) -> None:
        columns = query.columns
        rows: list[Row] = new
        bad: list[Row] = []
        if node.quarantined:
            new, bad = _separated(node, old, new)
            rows = new
        if old is None:
            _check_replacement(node, self.relations.get(node.name), columns)
        else:
            assert strategy is not None
            rows = new = [strategies.spelled(row, old.columns) for row in new]
            columns = strategies.columns_after(node, old.columns, strategies.spelled(columns, old.columns))
            held = [{name: strategies.fit(row.get(name), kind) for name, kind in columns.items()} for row in old.rows]
            known = [_known(row, columns) for row in new]
            rows = strategy(node, held, known)  # type: ignore[arg-type]
        complete = [{name: strategies.fit(row.get(name), kind) for name, kind in columns.items()} for row in rows]
        partition_by = node.partition_by if old is None else old.partition_by
        _check(node, partition_by, complete)  # type: ignore[arg-type]
        _judge(node, complete)
        self._quarantine(node, query.columns if old is None else old.columns, columns, bad)
        self._put(node.name, Relation(columns, complete, partition_by=partition_by))  # type: ignore[arg-type]

    def _quarantine(
        self, node: Node, before: Mapping[str, str], columns: Mapping[str, str], bad: Sequence[Row]
    ) -> None:
        """Adds rows to the quarantine table of a node.

        Raises:
            Undecided: a column has changed, or the rows may be in the quarantine table already.
        """
        there = self.relations.get(node.quarantine, Relation({}))
        kinds = {name.lower(): kind for name, kind in there.columns.items()}
        if node.quarantined and any(kinds.get(name.lower(), kind) != kind for name, kind in columns.items()):
            raise Undecided(f"a column of {node.quarantine} has another type")
        if not bad:
            return
        if before != columns or node.name in self._again:
            raise Undecided(f"rows of {node.name} are quarantined again, or with other columns than its table had")
        added = [strategies.spelled(row, there.columns) for row in bad]
        names = there.columns | strategies.spelled(columns, there.columns)
        every = (*there.rows, *added)
        rows: list[Row] = [{name: strategies.fit(row.get(name), names[name]) for name in names} for row in every]
        self.relations[node.quarantine] = Relation(names, rows)

    def _put(self, name: str, new: Relation) -> None:
        """Writes a version of a table."""
        old = self.relations.get(name)
        if old is not None and old.query is None:
            new.earlier = [*old.earlier, old.rows]
        self.relations[name] = new

    def _consume(self, node: Node, old: Relation | None, query: Query) -> None:
        """Writes the changes of the input that the table has not read."""
        above = self.relations.get(node.inputs[0])
        if above is None:
            raise Refused("the input is missing")
        versions = [*above.earlier, above.rows]
        if old is None or old.consumed is None:
            steps: list[Any] = [([], above.rows)]
        else:
            steps = list(itertools.pairwise(versions[old.consumed :]))
        if query.base == "upserts":
            new = queries.upserts(steps[0][0], steps[-1][1]) if steps else []
        else:
            new = [row for before, after in steps for row in queries.changes(before, after)]
        kept = [row for row in query.of(new) if old is not None or row.get("_change_type") != "delete"]
        self._store(node, old, query, kept, strategies.STRATEGIES[node.strategy])
        self.relations[node.name].consumed = len(versions) - 1

    def _snapshot(self, node: Node, step: Step) -> None:
        (name,) = node.inputs
        old = self.relations.get(node.name, Relation({}))
        rows = [strategies.spelled(row, old.columns) for row in self.contents(name)]
        columns = strategies.spelled(self.relations[name].columns, old.columns)
        if any(old.columns.get(column, kind) != kind for column, kind in columns.items()):
            raise Undecided(f"a column of the snapshot {node.name} has another type")
        left_out = set() if node.deletes == "new_record" else {strategies.DELETED}
        own = {name: kind for name, kind in _SNAPSHOT_COLUMNS.items() if name not in left_out}
        all_columns = old.columns | columns | own
        before = [{**row, strategies.END: _closed(row[strategies.END])} for row in old.rows]
        found = strategies.snapshot(node, before, rows, step.now)
        if node.open_end:
            found = [{**row, strategies.END: row[strategies.END] or OPEN_END} for row in found]
        self.relations[node.name] = Relation(
            all_columns, [{column: row.get(column) for column in all_columns} for row in found]
        )

    def _batches(self, node: Node, step: Step) -> str:
        """Runs the batches of a microbatch model, one a day: a retry only the batches that failed, and no further batch
        if the first one fails.
        """
        ends: list[Any] = []
        for start in self._windows(node, step):
            unit = (step.run_id, node.name, str(start))
            if node.name in self._partly and unit in self._done:
                continue
            try:
                if unit not in self._done or node.name in self._again:
                    self._batch(node, step, start, is_first=not ends)
                    self._done[unit] = None
                ends.append(SUCCESS)
            except Refused:
                ends.append(ERROR)
                if len(ends) == 1:
                    break
        return SUCCESS if ERROR not in ends else PARTIAL if SUCCESS in ends else ERROR

    def _windows(self, node: Node, step: Step) -> list[datetime]:
        last = step.now.replace(hour=0, minute=0, second=0)
        first = last - timedelta(days=1) if self._existing(node, step) else self.begin
        return [first + timedelta(days=number) for number in range((last - first).days + 1)]

    def _batch(self, node: Node, step: Step, start: datetime, is_first: bool) -> None:
        query = node.query
        assert query is not None
        old = self._existing(node, step) if is_first else self.relations.get(node.name)
        new = query.rows(self._reader(self._ephemeral(node), (start, start + timedelta(days=1))))
        strategies.replace_window([], new, start)
        self._store(node, old, query, new, lambda _, table, rows: strategies.replace_window(table, rows, start))


def _known(row: Row, columns: Mapping[str, str]) -> Row:
    """A row of the query without columns and fields that the table lacks."""
    return {
        name: {each: value[each] for each in value if each in strategies.fields(columns[name])}
        if isinstance(value, dict)
        else value
        for name, value in row.items()
        if name in columns or name == "_change_type"
    }


def _closed(end: datetime | None) -> datetime | None:
    """The end of a version, or None if it is open."""
    return None if end == OPEN_END else end


def _check(node: Node, partition_by: tuple[str, ...], rows: list[Row]) -> None:
    if any(row[name] == "" for row in rows for name in partition_by):
        raise Refused("an empty string as the value of a partition")
    if node.contract and any(row["k"] is None or (row["n"] is not None and row["n"] < -98) for row in rows):
        raise Refused("a row that breaks the contract")
    if node.enforced and _fail(("unique",), rows):
        raise Refused("two rows with one key")


def _judge(node: Node, rows: Rows) -> None:
    """Refuses rows that fail the audits of a node."""
    if node.audited and _fail(node.tests, rows):
        raise Refused("rows that fail an audit")


def _fail(tests: Sequence[str], rows: Rows) -> bool:
    keys = [row["k"] for row in rows]
    known = [key for key in keys if key is not None]
    return ("not_null" in tests and len(known) < len(keys)) or ("unique" in tests and len(set(known)) < len(known))


def _separated(node: Node, table: Relation | None, new: Rows) -> tuple[list[Row], list[Row]]:
    """Returns the new rows of a quarantined node that its audits let pass, and the others.

    Raises:
        Undecided: rows with repeated keys replace some rows of a table: it depends on its files.
    """
    good = [row for row in new if row["k"] is not None or "not_null" not in node.tests]
    bad = [row for row in new if row["k"] is None and "not_null" in node.tests]
    if "unique" not in node.tests or node.strategy == "merge":
        return good, bad
    old = [] if table is None else table.rows
    keys = Counter(row["k"] for row in (*old, *good) if row["k"] is not None)
    repeated = [row for row in good if keys[row["k"]] > 1]
    if repeated and table is not None and node.strategy == "delete+insert":
        raise Undecided(f"rows of {node.name} with repeated keys replace rows of its table")
    return [row for row in good if keys[row["k"]] < 2], [*bad, *repeated]


def _check_replacement(node: Node, existing: Relation | None, columns: Mapping[str, str]) -> None:
    """Refuses to drop columns of a mapped table that records its changes in the commit that replaces its rows."""
    properties = dict(node.properties)
    if existing is None or existing.query is not None or not _MAPPED_AND_RECORDED <= properties.keys():
        return
    for name, kind in existing.columns.items():
        if not _is_continued(kind, columns.get(name)):
            raise Refused(f"{name} would be dropped")


def _is_continued(old: str, new: str | None) -> bool:
    if new is None or not old.startswith("struct<"):
        return old == new
    return new.startswith("struct<") and strategies.fields(old).items() <= strategies.fields(new).items()


def _is_repeatable(node: Node) -> bool:
    """Whether doing the node twice applies no row twice."""
    if node.query is not None and node.query.newest:
        return False
    if node.kind == "incremental" and node.purged is not None:
        return False
    if node.kind != "incremental" or node.strategy in (
        "insert_overwrite",
        "replace_where",
        "microbatch",
        "changed_keys",
    ):
        return node.kind != "view"
    return node.strategy in ("merge", "delete+insert") and bool(node.key) and not node.predicate and not node.deletes


def _as_counters(inputs: Inputs) -> list[Counter[str]]:
    return [Counter(str(sorted(row.items())) for row in rows) for rows in inputs]

"""A model of runs that are held and corrected: random projects whose nodes write files that are named after what they
have read, so that a run which is corrected can be compared with a run that has begun after the corrections.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from dbt.adapters.silt.dbt_seams.run_again import RanNodes
from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.branches.run_branches import BranchedRun, RunBranches
from dbt.adapters.silt.engine.catalog.branches.run_nodes import RunNodes
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.documents import View
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.storage.store import Store
from dbt.adapters.silt.engine.kernel.table.actions import SetTransaction
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from dbt.adapters.silt.records.commit_facts import CommitFacts
from dbt.adapters.silt.runs.logical_run.affected import BranchWork
from tests.unit.engine.catalog.branches.test_branch_names import CREATE, opened
from tests.unit.engine.kernel.log_builder import add, paths

RUN = BranchedRun("shop", "dev", "night")
AUDIT = "audit"


@dataclass(frozen=True)
class Node:
    """A node of a project.

    Attributes:
        parents: the nodes and sources that it reads by reference.
        hidden: further relations that it reads, which dbt's graph does not contain.
        kind: `table` replaces its rows, `append` adds to them, `view` stores what its hidden reads have returned.
        audited: whether a hook adds a row to a table of all nodes.
        code: its code.
    """

    name: str
    parents: tuple[str, ...]
    hidden: tuple[str, ...] = ()
    kind: str = "table"
    audited: bool = False
    code: int = 0

    @property
    def id(self) -> str:
        return f"model.shop.{self.name}"


@dataclass
class Project:
    """A project of nodes in the order in which they are built, and its sources with their rows."""

    nodes: dict[str, Node]
    sources: list[str]
    store: Store
    seed: int = 0
    ran: list[str] = field(default_factory=list)

    def catalog(self) -> Catalog:
        self.seed += 1
        return opened(self.store, self.seed)

    def create(self) -> None:
        catalog = self.catalog()
        catalog.create_schema("silt", "main")
        for each in (*self.sources, AUDIT):
            put(catalog, each, f"{each} 0", {}, CommitFacts(), ())

    def correct_source(self, name: str, row: str) -> None:
        put(self.catalog(), name, row, {}, CommitFacts(), ())

    def correct_code(self, name: str) -> None:
        self.nodes[name] = replace(self.nodes[name], code=self.nodes[name].code + 1)

    def command(self, failures: Collection[str] = (), selected: Collection[str] | None = None) -> None:
        """Runs a command of the run: continues a held run, builds the nodes, and holds the run again."""
        catalog = self.catalog()
        runs = catalog.run_branches("silt")
        run, branch = runs.open(RUN)
        chosen = frozenset(each.id for each in self.nodes.values() if selected is None or each.name in selected)
        ran, known = self._ran(chosen), runs.nodes(run)
        if run.held:
            run, branch, known = self._corrected(runs, run, branch, ran, known, failures)
        runs.note_nodes(run, known.with_new({each: ran.definitions()[each] for each in chosen}))
        inside = catalog.on_branch("silt", branch)
        for each in self.nodes.values():
            if each.id in chosen | known.again:
                self._build(inside, each)
        runs.hold(run, "1 test failed")

    def publish(self) -> None:
        catalog = self.catalog()
        runs = catalog.run_branches("silt")
        run, branch = runs.open(RUN)
        runs.publish(run, branch)

    def shown(self) -> dict[str, str]:
        catalog = self.catalog()
        return {each: content(catalog, each) for each in (*self.nodes, AUDIT)}

    def _corrected(
        self,
        runs: RunBranches,
        run: BranchedRun,
        branch: Branch,
        ran: RanNodes,
        known: RunNodes,
        failures: Collection[str],
    ) -> tuple[BranchedRun, Branch, RunNodes]:
        work = BranchWork(branch.changes("silt"), ran, known)
        changed = {**work.changed_inputs(self.catalog()), **branch.outdated()}
        found = work.affected_by_corrections(changed, failures, lambda each: [each.replace("test.", "model.")])
        known = known.begun_again(found.nodes, ran.definitions())
        run, branch, _ = runs.begin_again(run, branch, found.relations, runs.later(run), known)
        return run, branch, known

    def _build(self, inside: Catalog, node: Node) -> None:
        facts = CommitFacts("command", "dev", RUN.run_id, node.id)
        unit = f"silt/{node.name}"
        found = inside.find(_name(node.name))
        if node.kind != "view" and found is not None:
            if inside.table(_name(node.name)).snapshot().transaction_version(unit) is not None:
                return
        self.ran.append(node.name)
        names = [*self._read(node.parents), *self._read(node.hidden)]
        seen = {each: content(inside, each) for each in (*node.parents, *node.hidden)}
        row = f"{node.name} {_digest(repr((node.code, seen)))}"
        if node.kind == "view":
            view = View(_name(node.name), row, inputs=tuple(f"silt.main.{each}" for each in node.hidden))
            inside.put_view(view, replace=True)
            return
        read = {f"silt.main.{each}": [inside.table(_name(each)).snapshot().version] for each in names}
        put(inside, node.name, row, read, facts, (SetTransaction(unit, 1),), replaces=node.kind == "table")
        if node.audited:
            own = {f"silt.main.{node.name}": [inside.table(_name(node.name)).snapshot().version]}
            put(inside, AUDIT, f"audit {row}", own, facts, (SetTransaction(f"{unit}/hook", 1),))

    def _read(self, names: Collection[str]) -> list[str]:
        """The tables among relations; a view has no version."""
        return [each for each in names if each not in self.nodes or self.nodes[each].kind != "view"]

    def _ran(self, selected: frozenset[str]) -> RanNodes:
        nodes = {each.id: each for each in self.nodes.values()}
        sources = {f"source.shop.{each}": each for each in self.sources}
        relations = {("main", each): uid for uid, each in sources.items()}
        relations |= {("main", each.name): uid for uid, each in nodes.items()}

        def with_descendants(given: Collection[str]) -> frozenset[str]:
            found = set(given)
            for uid, node in nodes.items():
                if {relations["main", each] for each in node.parents} & found:
                    found.add(uid)
            return frozenset(found)

        definitions = {uid: str(each.code) for uid, each in nodes.items()}
        others = frozenset(nodes) - selected
        return RanNodes(
            selected, relations, (), with_descendants, frozenset(nodes), others, lambda: definitions, lambda _: ""
        )


def project(seed: int, make: Callable[[], Store]) -> Project:
    """A random project."""
    choose = random.Random(seed)
    sources = ["raw", "other"]
    nodes: dict[str, Node] = {}
    for number in range(choose.randint(3, 6)):
        before = [*sources, *nodes]
        parents = tuple(sorted(choose.sample(before, choose.randint(1, 2))))
        tables = [each for each in before if each not in parents and (each in sources or nodes[each].kind != "view")]
        hidden = tuple(choose.sample(tables, min(len(tables), choose.choice([0, 0, 1]))))
        kind = choose.choice(["table", "append", "view"])
        name = f"n{number}"
        nodes[name] = Node(name, parents, hidden, kind, kind != "view" and choose.random() < 0.3)
    return Project(nodes, sources, make())


def corrections(seed: int, shape: Project) -> list[tuple[str, str]]:
    """Random corrections of a project: what is corrected, and its name."""
    choose = random.Random(f"corrections {seed}")
    known = [*(("source", each) for each in shape.sources), *(("code", each) for each in shape.nodes)]
    return choose.sample(known, choose.randint(0, 2))


def correct(shape: Project, found: Collection[tuple[str, str]]) -> None:
    for what, name in found:
        if what == "source":
            shape.correct_source(name, f"{name} corrected")
        else:
            shape.correct_code(name)


def put(
    catalog: Catalog,
    name: str,
    row: str,
    read: Mapping[str, list[int]],
    facts: CommitFacts,
    transactions: tuple[SetTransaction, ...],
    replaces: bool = False,
) -> None:
    """Adds a row to a table, which is created if it does not exist, or replaces its rows by it."""
    settings = CommitSettings(commit_info=facts.commit_info() if facts.node_id else {}, read_versions=read)
    table = _name(name)
    is_new = catalog.find(table) is None
    log = catalog.new_table(table) if is_new else catalog.table(table)
    if is_new:
        metadata = replace(CREATE.metadata, id=f"table {name}") if CREATE.metadata else None
        commit(log, None, replace(CREATE, metadata=metadata), ReadSet(), settings)
    snapshot = log.snapshot()
    log.store.put(row, b"data")
    kept = {each.path for each in snapshot.add_files()}
    removes = tuple(each.remove(1) for each in snapshot.add_files() if replaces and each.path != row)
    adds = () if row in kept else (add(row),)
    commit(log, snapshot, Changes(Operation("WRITE"), adds, removes, transactions=transactions), ReadSet(), settings)
    if is_new:
        catalog.publish_table(table, log)


def content(catalog: Catalog, name: str) -> str:
    """The rows of a relation."""
    entry = catalog.find(_name(name))
    if entry is None:
        return "missing"
    if entry.kind.value == "view":
        return catalog.view(_name(name)).text
    return repr(sorted(paths(catalog.table(_name(name)))))


def _name(name: str) -> RelationName:
    return RelationName("silt", "main", name)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]

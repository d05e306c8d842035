"""Simulates processes that create, replace, rename and drop relations of one schema, from a seed.

Some order of the operations must explain all answers, whatever was interrupted, lost or late.

`python -m tests.simulation --of catalog` runs many seeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.documents import View
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationKind, RelationName
from dbt.adapters.silt.engine.kernel.errors import (
    CommitStateUnknownError,
    ConcurrentModificationError,
    NotATableError,
    RelationExistsError,
    RelationNotFoundError,
    SiltError,
    StorageError,
)
from dbt.adapters.silt.engine.kernel.storage.store import ObjectMissing
from dbt.adapters.silt.engine.kernel.table.actions import AddFile, CommitInfo, Metadata, Protocol, serialize
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.changes import Operation as Work
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from tests.simulation.warehouse.linearizability import Effect, Operation, order_of
from tests.simulation.warehouse.oracle import Violation
from tests.simulation.warehouse.process import Crash, Process
from tests.simulation.warehouse.seeded import seeded
from tests.simulation.warehouse.weather import FAIR, FOUL, ROUGH
from tests.simulation.warehouse.world import DATABASE, SCHEMA, World

NAMES = ("a", "b", "c")
PROCESSES = 3
STATEMENTS = (2, 6)
_ON_BRANCH = ("create", "put view", "drop table", "drop view")
_TABLE_SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'


class CatalogSimulation:
    """The processes of one seed, and the record of their operations."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.world = World(seed, (FAIR, ROUGH, FOUL)[seed % 3], has_folders=False)
        self.operations: list[Operation] = []
        self.counts: Counter[str] = Counter()
        self._numbers = iter(range(1_000_000))

    def run(self) -> None:
        """Runs all operations of the seed, and checks the answers.

        Raises:
            Violation: if a check fails; the message has the schedule.
        """
        self._draw_theme()
        processes = [Process(self.world, f"p{number}") for number in range(PROCESSES)]
        Catalog({DATABASE: self.world.storage}).create_schema(DATABASE, SCHEMA)
        fair, self.world.weather = self.world.weather, FAIR
        founder = Process(self.world, "founder")
        for name in self._names:
            self.create(founder, name)
        self.world.weather = fair
        results = self.world.run([self._life(process) for process in processes])
        broken = next((each for each in results if isinstance(each, BaseException)), None)
        if broken is not None:
            raise self._violation(f"it broke: {broken!r}") from broken
        self._look_at_the_end()
        if order_of(self.operations) is None:
            raise self._violation("no order explains the answers:\n" + "\n".join(map(_line, self.operations)))

    def _draw_theme(self) -> None:
        """Limits most seeds to few kinds of operations and few names, so that processes conflict."""
        chance = self.world.random
        self._names = tuple(chance.sample(NAMES, chance.choice((1, 2, 2, 3))))
        self._kinds = list(STATEMENT_KINDS)
        if chance.random() < 0.8:
            self._kinds = chance.choice(
                (_ENDS, _RENAMES, _PUBLISHED, chance.sample(self._kinds, chance.choice((2, 3, 4))))  # type: ignore[arg-type]
            )

    def _life(self, process: Process) -> Callable[[], None]:
        chance = process.random
        weights = [STATEMENT_KINDS.get(kind, _PUBLISHING) for kind in self._kinds]
        todo = [chance.choices(self._kinds, weights)[0] for _ in range(chance.randint(*STATEMENTS))]

        def live() -> None:
            for statement in todo:
                try:
                    statement(self, process)
                except Crash:
                    process.start()

        return live

    def _run(self, process: Process, what: str, effect: Effect, body: Callable[[], str], success: str = "ok") -> None:
        """Runs one operation and records its answer."""
        began, outcome = self.world.step, None
        self.world.note(f"{process.name}: begins {what}")
        try:
            outcome = body()
        except RelationExistsError:
            outcome = "exists"
        except (RelationNotFoundError, NotATableError):
            outcome = "absent"
        except ConcurrentModificationError:
            outcome = "overtaken"
        except (StorageError, CommitStateUnknownError, ObjectMissing) as error:
            self.world.note(f"{process.name}: {error!r}")
        finally:
            ended = None if outcome is None else self.world.step
            self.operations.append(Operation(f"{process.name}: {what}", effect, began, ended, outcome, success))
            self.world.note(f"{process.name}: {what}: {outcome}")
            self.counts[f"{what.split()[0]}: {outcome}"] += 1

    def create(self, process: Process, name: str | None = None) -> None:
        """CREATE TABLE, or CREATE OR REPLACE over a view."""
        name, number = name or process.random.choice(self._names), next(self._numbers)
        over_view = process.random.random() < 0.3

        def body() -> str:
            log = process.catalog.new_table(_named(name), over_view)
            log.store.put_if_absent(commit_path(0), _first_version(number))  # an existing file is this commit
            process.catalog.publish_table(_named(name), log, over_view)
            return "ok"

        def effect(state: dict[str, str], outcome: str) -> dict[str, str] | None:
            is_free = name not in state or (over_view and state[name].startswith("view"))
            if outcome == "ok":
                return {**state, name: f"table {number}"} if is_free else None
            return state if outcome == "exists" and not is_free else None

        self._run(process, f"create {name} as {number}, over a view: {over_view}", effect, body)

    def drop_table(self, process: Process) -> None:
        name, if_exists = process.random.choice(self._names), process.random.random() < 0.5

        def effect(state: dict[str, str], outcome: str) -> dict[str, str] | None:
            found = state.get(name, "")
            if outcome == "ok" and (found.startswith("table") or (if_exists and not found)):
                return _without(state, name)
            is_absent = found.startswith("view") or (not found and not if_exists)
            return state if outcome == "absent" and is_absent else None

        self._run(
            process,
            f"drop table {name}, if exists: {if_exists}",
            effect,
            lambda: _ok(process.catalog.drop_table(_named(name), if_exists)),  # type: ignore[func-returns-value]
        )

    def put_view(self, process: Process) -> None:
        name, number = process.random.choice(self._names), next(self._numbers)
        replace = process.random.random() < 0.7
        and_table = replace and process.random.random() < 0.7

        def effect(state: dict[str, str], outcome: str) -> dict[str, str] | None:
            found = state.get(name, "")
            is_free = not found or (replace and found.startswith("view")) or (and_table and found.startswith("table"))
            if outcome == "ok":
                return {**state, name: f"view {number}"} if is_free else None
            return state if outcome == "exists" and not is_free else None

        self._run(
            process,
            f"put view {name} as {number}, replace: {replace}, a table, too: {and_table}",
            effect,
            lambda: _ok(process.catalog.put_view(View(_named(name), str(number)), replace, and_table)),  # type: ignore[func-returns-value]
        )

    def drop_view(self, process: Process) -> None:
        name = process.random.choice(self._names)

        def effect(state: dict[str, str], outcome: str) -> dict[str, str] | None:
            is_view = state.get(name, "").startswith("view")
            if outcome == "ok":
                return _without(state, name) if is_view else None
            return state if outcome == "absent" and not is_view else None

        self._run(process, f"drop view {name}", effect, lambda: _ok(process.catalog.drop_view(_named(name))))  # type: ignore[func-returns-value]

    def rename(self, process: Process) -> None:
        old, new = process.random.sample(NAMES, 2)

        def effect(state: dict[str, str], outcome: str) -> dict[str, str] | None:
            if outcome == "ok":
                is_possible = old in state and new not in state
                return {**_without(state, old), new: state[old]} if is_possible else None
            is_so = (outcome == "absent" and old not in state) or (outcome == "exists" and new in state)
            return state if is_so else None

        self._run(
            process,
            f"rename {old} to {new}",
            effect,
            lambda: _ok(process.catalog.rename(_named(old), _named(new))),  # type: ignore[func-returns-value]
        )

    def publish(self, process: Process) -> None:
        """Changes up to two names on a branch, and publishes it."""
        chance = process.random
        chosen = [(name, chance.choice(_ON_BRANCH), next(self._numbers)) for name in self._names[:2]]

        def body() -> str:
            branch = process.catalog.new_branch(DATABASE)
            inside = process.catalog.on_branch(DATABASE, branch)
            try:
                for name, action, number in chosen:
                    _change(inside, name, action, number)
                branch.publish()
            except (CommitStateUnknownError, StorageError, ObjectMissing):
                raise
            except SiltError:
                branch.discard()
                raise
            return "ok"

        def effect(state: dict[str, str], outcome: str) -> dict[str, str] | None:
            if outcome != "ok":
                return state
            for name, action, number in chosen:
                found = state.get(name, "")
                if action in ("drop table", "drop view"):
                    if not found.startswith(action.removeprefix("drop ")):
                        return None
                    state = _without(state, name)
                elif found.startswith("table") and action == "create":
                    return None
                else:
                    state = {**state, name: f"{'table' if action == 'create' else 'view'} {number}"}
            return state

        what = ", ".join(f"{action} {name} as {number}" for name, action, number in chosen)
        self._run(process, f"publish {what}", effect, body)

    def find(self, process: Process) -> None:
        name = process.random.choice(self._names)

        def body() -> str:
            found = process.catalog.find(_named(name))
            return "nothing" if found is None else found.kind.value

        self._run(process, f"find {name}", _sees(name, lambda found: found.split()[0] if found else "nothing"), body)

    def read(self, process: Process) -> None:
        """Reads the view of a name; a table is not read, since it may be dropped after it was found."""
        name = process.random.choice(self._names)

        def body() -> str:
            try:
                return f"view {process.catalog.view(_named(name)).text}"
            except RelationNotFoundError:
                return "no view"

        self._run(
            process, f"read {name}", _sees(name, lambda found: found if found.startswith("view") else "no view"), body
        )

    def _look_at_the_end(self) -> None:
        """Records the final state as operations, and checks that it can be read and that it equals the listing."""
        looker = Catalog({DATABASE: self.world.storage})
        for name in NAMES:
            try:
                seen = _seen(looker, _named(name))
            except SiltError as error:
                raise self._violation(f"{name} cannot be read in the end: {error!r}") from error
            effect = _sees(name, lambda found: found or "nothing")
            self.operations.append(
                Operation(f"the end: {name}", effect, self.world.step + 1, self.world.step + 2, seen)
            )
        listed = {entry.name.identifier: entry.kind for entry in looker.relations(DATABASE, SCHEMA)}
        found = {name: looker.find(_named(name)) for name in NAMES}
        if listed != {name: entry.kind for name, entry in found.items() if entry is not None}:
            raise self._violation(f"the listing {listed} is not what is found: {found}")

    def _violation(self, what: str) -> Violation:
        schedule = "\n".join(self.world.schedule)
        return Violation(f"{schedule}\n\nseed {self.seed}: {what}")


STATEMENT_KINDS: dict[Callable[[CatalogSimulation, Process], None], float] = {
    CatalogSimulation.create: 5,
    CatalogSimulation.drop_table: 3,
    CatalogSimulation.put_view: 4,
    CatalogSimulation.drop_view: 1,
    CatalogSimulation.rename: 3,
    CatalogSimulation.find: 2,
    CatalogSimulation.read: 2,
}


_ENDS = [CatalogSimulation.create, CatalogSimulation.drop_table, CatalogSimulation.put_view, CatalogSimulation.find]
_PUBLISHED = [CatalogSimulation.publish, CatalogSimulation.create, CatalogSimulation.drop_table, CatalogSimulation.read]
_EIGHTH, _PUBLISHING = 8, 4.0
_RENAMES = [CatalogSimulation.create, CatalogSimulation.drop_table, CatalogSimulation.rename, CatalogSimulation.find]


def simulate(seed: int) -> CatalogSimulation:
    """Runs one seed.

    Raises:
        Violation: if no order of the operations explains the answers; the message has the schedule.
    """
    with seeded():
        simulation = CatalogSimulation(seed)
        simulation.run()
    return simulation


def _named(identifier: str) -> RelationName:
    return RelationName(DATABASE, SCHEMA, identifier)


def _seen(catalog: Catalog, name: RelationName) -> str:
    entry = catalog.find(name)
    if entry is None:
        return "nothing"
    if entry.kind is RelationKind.VIEW:
        return f"view {catalog.view(name).text}"
    return f"table {catalog.table(name).snapshot().metadata.id}"


def _first_version(number: int) -> bytes:
    actions = [
        CommitInfo(timestamp=1, operation="CREATE TABLE"),
        Protocol(),
        Metadata(id=str(number), schema_string=_TABLE_SCHEMA),
        AddFile("part-0.parquet", {}, size=1, modification_time=1),
    ]
    return serialize(actions)  # type: ignore[arg-type]


def _change(inside: Catalog, name: str, action: str, number: int) -> None:
    """Changes a name on a branch; a new table has no rows, because a publication checks that its files exist."""
    if action == "create":
        log = inside.new_table(_named(name), replace_view=True)
        changes = Changes(Work("CREATE TABLE"), metadata=Metadata(str(number), _TABLE_SCHEMA), protocol=Protocol())
        commit(log, None, changes, ReadSet(), CommitSettings())
        inside.publish_table(_named(name), log, replace_view=True)
    elif action == "put view":
        inside.put_view(View(_named(name), str(number)), replace=True, replace_table=True)
    elif action == "drop table":
        inside.drop_table(_named(name))
    else:
        inside.drop_view(_named(name))


def _ok(done: None) -> str:
    return "ok"


def _without(state: dict[str, str], name: str) -> dict[str, str]:
    return {each: what for each, what in state.items() if each != name}


def _sees(name: str, answer: Callable[[str], str]) -> Effect:
    """Returns the effect of an operation that only reads a name."""
    return lambda state, outcome: state if answer(state.get(name, "")) == outcome else None


def _line(operation: Operation) -> str:
    return f"  {operation.began:5}-{operation.ended or '':5} {operation.what}: {operation.outcome}"

"""Randomly damaged documents of publications, branches, runs, names, statements and tests, and all that reads them.

`tests.security.fuzz_in_memory` tries their seeds.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from dbt.adapters.silt.engine.builds.passed_tests import PassedTest, PassedTests
from dbt.adapters.silt.engine.builds.present import decide_now
from dbt.adapters.silt.engine.catalog.branches.branch import Branch
from dbt.adapters.silt.engine.catalog.branches.later_statements import LaterStatement
from dbt.adapters.silt.engine.catalog.branches.run_branches import BranchedRun
from dbt.adapters.silt.engine.catalog.branches.run_commands import CommandResults, RunCommand
from dbt.adapters.silt.engine.catalog.branches.run_nodes import RunNodes
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.documents import Function, View
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.clock import SystemClock
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.log.builds import Build, BuildFacts
from dbt.adapters.silt.engine.kernel.publication.documents import Documents
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from dbt.adapters.silt.engine.kernel.table.actions import AddFile
from dbt.adapters.silt.engine.kernel.transaction.changes import Changes, Operation, ReadSet
from dbt.adapters.silt.engine.kernel.transaction.commit import CommitSettings, commit
from dbt.adapters.silt.runs.logical_run.changed_inputs import changed_inputs
from tests.corpus.mutations import DEEPER, KINDS, Files, mutate, texts_set
from tests.fixed_clock import FixedClock
from tests.security import attacks
from tests.security.fuzz import SECRET, Scene, catalog_of, refused
from tests.unit.cli.house import House, rows
from tests.unit.engine.catalog.conftest import make_table

RUN: Final = BranchedRun("shop", "dev", "night")
OWNER: Final = "model.shop.hostile"
_HOUR_MS: Final = 3_600_000
_NUMBERS: Final = ("1e-999999999", "1e999", "NaN", "Infinity", "-Infinity", "9" * 5_000, "1.5", "-1", "true", "null")
_NAMES: Final = (
    *(
        "${env:HOME}",
        "${spark.app.id}",
        "`",
        "'",
        '"',
        "\\",
        "\n",
        "\x1b[31m",
        "\u202e",
        "\0",
        "a.b",
        "{{ 7*7 }}",
        "--",
    ),
    *(
        "x" * 10_000,
        "..",
        "../good",
        "main/good",
        "good",
        "silt.main.good",
        "/",
        "",
        "</script><script>alert(1)</script>",
    ),
)
_OTHER_IDS: Final = ("0", "1", "9999999999999999999999", "-1", "id", "../x")


Open: TypeAlias = Callable[[], Catalog]
"""Opens the warehouse as another process does."""


class _Killed(BaseException):
    """Ends a publication in this process."""


def scene(root: Path) -> Scene:
    """Creates a warehouse with a publication that was left before its decision, and with an unpublished run."""
    house = House(root / "house")
    house.folder.mkdir(parents=True)
    house.create("main.good", rows(0, 3))
    house.create("main.hostile", rows(0, 3))
    catalog = house.catalog
    catalog.create_schema("silt", "old")
    view = View(house.name("main.seen"), "select id from hostile", current_database="silt", current_schema="main")
    catalog.put_view(view)
    catalog.put_function(Function(house.name("main.twice"), (), "2", "int", True))
    facts = BuildFacts(OWNER, "code", files={"/data/x": "1"}, definitions={"silt.main.seen": view.fingerprint})
    attacks.changed(
        house, 0, "commitInfo", **facts.commit_info(), readVersions={"silt.main.good": [0]}, **facts.inputs_info()
    )
    PassedTests(catalog, "silt").note(PassedTest(facts))
    _left(house)
    runs = catalog.run_branches("silt")
    run, branch = runs.open(RUN)
    inside = catalog.on_branch("silt", branch)
    house.append(inside.table(log_name := house.name("main.hostile")), rows(6, 1))
    inside.put_view(
        View(house.name("main.seen"), "select 2 as id", current_database="silt", current_schema="main"), True
    )
    inside.put_function(Function(house.name("main.thrice"), (), "3", "int", True))
    inside.drop_schema("silt", "old")
    runs.later(run).add("model.b", [LaterStatement("vacuum main.hostile", f"silt/{log_name.identifier}")])
    runs.note_nodes(run, RunNodes({OWNER: "hash"}, frozenset({OWNER})))
    commands = runs.commands(run)
    commands.begin(RunCommand("first", "dbt build", "host", 1, 5, frozenset({OWNER}), True))
    commands.end(CommandResults(passed=frozenset({OWNER})))
    runs.hold(run, "a test failed")
    found = Scene(root)
    found.remember()
    return found


def _left(house: House) -> None:
    """Publishes the changes of a branch, and leaves another publication, an hour ago, after its commits."""
    house.create("main.other", rows(0, 3))
    earlier = House(house.folder)
    earlier.catalog = Catalog({"silt": LocalStore(house.folder)}, FixedClock(SystemClock().now_ms() - _HOUR_MS))
    _on_branch(house, "main.hostile").publish()
    left, decide = _on_branch(earlier, "main.other"), Documents.decide
    Documents.decide = _killed  # type: ignore[method-assign, assignment]
    try:
        with contextlib.suppress(_Killed):
            left.publish()
    finally:
        Documents.decide = decide  # type: ignore[method-assign]


def _on_branch(house: House, table: str) -> Branch:
    branch = house.catalog.new_branch("silt")
    inside = house.catalog.on_branch("silt", branch)
    house.append(inside.table(house.name(table)), rows(3, 1))
    view = View(house.name(f"{table}_seen"), "select 1 as id", current_database="silt", current_schema="main")
    inside.put_view(view)
    return branch


def _killed(*_: object) -> None:
    raise _Killed


def _number_put(files: Files, chance: random.Random) -> str:
    """Puts a number that need not be JSON in the place of a number, or of a string of digits."""
    name = chance.choice(sorted(each for each in files if each.endswith(".json")))
    parts = files[name].decode(errors="replace").split(":")
    at, number = chance.randrange(len(parts)), chance.choice(_NUMBERS)
    _, comma, rest = parts[at].partition(",")
    parts[at] = f" {number}{comma}{rest}"
    files[name] = ":".join(parts).encode()
    return f"{number[:20]} put into {name}"


def mutated(documents: Files, chance: random.Random, outside: str) -> list[str]:
    """Damages one to three of the documents in place; returns a description of each damage.

    Args:
        outside: the path of a file that no document may reach.
    """
    texts = (*_NAMES, outside, "../../home/id_rsa", f"file://{outside}", *_OTHER_IDS)
    kinds = (*KINDS, *DEEPER, *[texts_set(texts)] * 12, *[_number_put] * 5, _renamed)
    return [mutate(documents, chance, kinds) for _ in range(chance.choice((1, 1, 2, 3))) if documents]


def damaged(found: Scene, chance: random.Random) -> list[str]:
    """Damages one to three documents; returns a description."""
    files = {name: data for name, data in found.files.items() if is_document(name)}
    told = mutated(files, chance, str(found.canary / "id_rsa"))
    for name in found.files:
        if is_document(name) and name not in files:
            (found.house / name).unlink()
    for name, data in files.items():
        if found.files.get(name) != data:
            (found.house / name).parent.mkdir(parents=True, exist_ok=True)
            (found.house / name).write_bytes(data)
    return told


def _renamed(files: Files, chance: random.Random) -> str:
    """Gives a document the name of another one, or a name that none has."""
    name, other = chance.choice(sorted(files)), chance.choice(sorted(files))
    folder, _, last = other.rpartition("/")
    new = chance.choice((other, f"{folder}/x{last}", f"{folder}/{'9' * 20}.json", f"{folder}/1.begun.json"))
    files[new] = files[name]
    return f"{name} copied to {new}"


def is_document(name: str) -> bool:
    return "main/good/" not in name and "_schema" not in name and name.endswith(".json")


def _opened(open_catalog: Open) -> None:
    """Continues the run, as its next command does."""
    catalog = open_catalog()
    runs = catalog.run_branches("silt")
    run, branch = runs.open(RUN)
    runs.read_others(run, branch, runs.commands(run))
    runs.nodes(run)
    branch.conflicts("silt")
    branch.outdated()
    for change in branch.changes("silt"):
        for info in change.infos.values():
            changed_inputs(catalog, "", info, "select 1")
    inside = catalog.on_branch("silt", branch)
    list(inside.all_relations("silt"))
    log = inside.table(_name("hostile"))
    log.store.put("new.parquet", b"PAR1")
    added = AddFile("new.parquet", {}, 4, 1)
    commit(log, log.snapshot(), Changes(Operation("WRITE"), (added,)), ReadSet(), CommitSettings())


def _published(open_catalog: Open) -> None:
    runs = open_catalog().run_branches("silt")
    run = runs.find(RUN.run_id)
    runs.publish(run, runs.existing(run))
    waiting = runs.waiting(RUN)
    if waiting is not None:
        runs.run_later(waiting, lambda _: None)


def _dropped(open_catalog: Open) -> None:
    runs = open_catalog().run_branches("silt")
    run = runs.find(RUN.run_id)
    runs.drop(run, runs.existing(run, to_drop=True))


def _decided(open_catalog: Open) -> None:
    catalog = open_catalog()
    log = catalog.table(_name("hostile"))
    decide_now(catalog, log, Build(OWNER, "code"), "select * from read_files('/data/x')")
    tests = PassedTests(catalog, "silt")
    tests.decide(Build(OWNER, "code"), tests.find(OWNER), "select 1")
    for done in log.newest_commits():
        changed_inputs(catalog, "", done.info, "select 1")


def _changed_names(open_catalog: Open) -> None:
    catalog = open_catalog()
    list(catalog.all_relations("silt"))
    catalog.put_view(View(_name("seen"), "select 3 as id", current_database="silt", current_schema="main"), True)
    catalog.drop_table(_name("hostile"))
    make_table(catalog, _name("fresh"))
    catalog.drop_schema("silt", "old")


def _listed(open_catalog: Open) -> None:
    """Reads all names, and the newest version of each table, as lists and reports do."""
    catalog = open_catalog()
    for name in catalog.all_tables():
        refused([partial(_snapshot, catalog, name)])
    refused([lambda: catalog.view(_name("seen")), lambda: catalog.functions("silt", "main")])
    refused([lambda: catalog.function(_name("twice")), lambda: catalog.run_branches("silt").find(RUN.run_id)])


def _snapshot(catalog: Catalog, name: RelationName) -> None:
    catalog.table(name).snapshot()


def _name(identifier: str) -> RelationName:
    return RelationName("silt", "main", identifier)


def _said(*arguments: str) -> Callable[[Path], None]:
    def run(house: Path) -> None:
        page = house.parent / "page.html"
        page.write_text("", encoding="utf-8")
        to = ("--output", str(page)) if arguments == ("report",) else ()
        said = attacks.silt(House(house), *arguments, *to)
        shown = page.read_text(encoding="utf-8")
        text = said.all + shown
        assert said.code in (0, 1, 2), said.code
        assert "SILT_INTERNAL" not in text and "Traceback" not in text, text[:3000]
        assert SECRET.decode() not in text
        assert "\x1b" not in said.all and "<script>alert(1)" not in shown

    return run


INSIDE: Final[tuple[Callable[[Open], None], ...]] = (
    *(_opened, _published, _dropped, _decided),
    *(_changed_names, _listed),
)
"""The doors of this process, on any store."""


def _on_folder(door: Callable[[Open], None]) -> Callable[[Path], None]:
    return lambda house: door(partial(catalog_of, house))


DOORS: Final[tuple[Callable[[Path], None], ...]] = (
    *map(_on_folder, INSIDE),
    *(_said("runs"), _said("check"), _said("report"), _said("publish", "night"), _said("drop-run", "night")),
    *(
        _said("show", "main.hostile"),
        _said("show", "main.seen"),
        _said("history", "main.hostile"),
        _said("run", "night"),
    ),
)


def attack(found: Scene, seed: int) -> None:
    """Damages documents, then opens two doors, and reads the other table.

    Raises:
        AssertionError: if a door crashed, hung, touched other files or made the other table unreadable.
    """
    chance = random.Random(seed)
    told = damaged(found, chance)
    doors = chance.sample(DOORS, 2)
    try:
        with attacks.limited():
            for door in doors:
                _open(door, found.house)
        assert not found.problems()
        if found.is_good_untouched():
            assert attacks.silt(House(found.house), "show", "main.good", "--rows").code == 0, "main.good"
    except Exception as error:
        names = [getattr(door, "__name__", "") for door in doors]
        raise AssertionError(f"seed {seed}: {'; '.join(told)}: {names}: {error!r}"[:3000]) from error
    finally:
        found.restored()


def _open(door: Callable[[Path], None], house: Path) -> None:
    try:
        door(house)
    except SiltError as error:
        assert error.code and error.code != "SILT_INTERNAL", repr(error)

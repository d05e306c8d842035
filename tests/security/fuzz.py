"""A warehouse whose files another user may have damaged, the ways to read it without Spark, and what none of them may
do.

Next to the warehouse is another user's folder, which the test watches: nothing in it may be read, changed or deleted.
The file system records the time at which a file was last read, so a read is noticed whatever happens to its bytes.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbt.adapters.silt import engine as silt_engine
from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.documents import Function, View
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.catalog.open_databases import open_databases
from dbt.adapters.silt.engine.commands.maintenance.vacuum import Retention, vacuum
from dbt.adapters.silt.engine.commands.target import WriteSettings
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.storage.settings import storages
from dbt.adapters.silt.engine.sql.ast import Parameter, ViewColumn
from dbt.adapters.silt.engine.statements.resolve.information_schema import Asked, Listing
from tests.corpus.corpus import CORPUS
from tests.corpus.mutations import DEEPER, KINDS, Files, mutate, texts_set
from tests.fixed_clock import FixedClock
from tests.memory_object_store import MemoryObjectStore
from tests.security import attacks
from tests.unit.cli.house import House, rows
from tests.unit.engine.catalog.conftest import make_table

SECRET = b"-----BEGIN PRIVATE KEY-----"
MEGABYTES = 300
"""The additional memory that one damaged warehouse may take, in bytes."""

TABLE = "main/hostile"
RELATIONS = ("tables", "views", "columns", "schemata")
CORPUS_TABLES = (
    "delta-rs/checkpoint-v2-table",
    "delta-rs/table-with-dv-small",
    "delta-rs/cdf-table-with-cdc-and-dvs",
    "delta-rs/delta-0.8.0-special-partition",
    "delta-rs/table_with_column_mapping",
    "delta-rs/cdc_ict_table",
    "delta-rs/table_with_liquid_clustering",
    "delta-rs/table-with-domain-metadata",
    "delta-rs/checkpoint_with_partitions",
    "delta-rs/simple_table_with_checkpoint",
    "delta-rs/golden",
)
_OLD_NS = 1_000_000_000
_HOURS_MS = 3_600_000


@dataclass
class Scene:
    """A warehouse with the tables `good` and `hostile`, a view and a function, and another user's folder.

    Attributes:
        files: of the warehouse, undamaged, by path.
    """

    root: Path
    files: Files = field(default_factory=dict)

    @property
    def house(self) -> Path:
        return self.root / "house"

    @property
    def canary(self) -> Path:
        return self.root / "home"

    def remember(self) -> None:
        """Records the warehouse's files as undamaged, and the state of the folder next to it."""
        self.files = {
            path.relative_to(self.house).as_posix(): path.read_bytes() for path in self._all() if path.is_file()
        }
        (self.canary / "sub").mkdir(parents=True)
        for name in ("id_rsa", "part-0.parquet", "sub/letter.json", "00000000000000000000.json"):
            (self.canary / name).write_bytes(SECRET)
        self._age()

    def damaged(self, chance: random.Random) -> list[str]:
        """Damages a few files; returns a description."""
        files = {name: data for name, data in self.files.items() if not name.startswith("main/good/")}
        groups = (
            {name: data for name, data in files.items() if "/_delta_log/" in name},
            {name: data for name, data in files.items() if "/_delta_log/" not in name and "_schema" not in name},
        )
        told: list[str] = []
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            group = groups[chance.random() < 0.25]
            told += [mutate(group, chance, self.kinds)] if group else []
        for name in files:
            found = groups[0].get(name, groups[1].get(name))
            if found is None and "_schema" not in name:
                (self.house / name).unlink()
            elif found is not None and found != files[name]:
                (self.house / name).write_bytes(found)
        if chance.random() < 0.05:
            told.append(self._linked(chance))
        return told

    @property
    def kinds(self) -> Sequence[Callable[[Files, random.Random], str]]:
        """Returns ways to damage files, including paths of the folder next to the warehouse."""
        outside = str(self.canary / "part-0.parquet")
        texts = (
            outside,
            f"file:{outside}",
            f"file://{outside}",
            f"//{outside}",
            outside.replace("/", "%2F"),
            "../../../home/part-0.parquet",
            "..%2F..%2F..%2Fhome%2Fpart-0.parquet",
            "../../good/../../../home/id_rsa",
            "%252e%252e/%252e%252e/%252e%252e/home/id_rsa",
            "x/../../../../home/sub",
            f"{self.canary}/",
            "../../../home",
            "\x1b]0;x\x07\u202e",
            "`; drop table main.good; --",
            "${jndi:ldap://x}",
            "x" * 100_000,
        )
        return (*KINDS, *DEEPER, *[texts_set(texts)] * 5)

    def restored(self) -> None:
        """Restores the undamaged files."""
        for path in self._all():
            if path.is_symlink() or path.is_file():
                name = path.relative_to(self.house).as_posix()
                if path.is_symlink() or self.files.get(name) != path.read_bytes():
                    path.unlink()
        for name, data in self.files.items():
            if not (self.house / name).exists():
                (self.house / name).parent.mkdir(parents=True, exist_ok=True)
                (self.house / name).write_bytes(data)

    def is_good_untouched(self) -> bool:
        """Returns whether the other table's files are unchanged."""
        return all(
            (self.house / name).read_bytes() == data
            for name, data in self.files.items()
            if name.startswith("main/good/")
        )

    def problems(self) -> list[str]:
        """Returns the accesses to the other user's folder."""
        found = []
        for folder, _, names in os.walk(self.canary):
            for path in (folder, *(os.path.join(folder, name) for name in names)):
                status = os.stat(path)
                if status.st_mtime_ns != 2 * _OLD_NS:
                    found.append(f"{path} was changed")
                elif status.st_atime_ns != _OLD_NS and path != folder:
                    found.append(f"{path} was read")
        if sum(path.is_file() for path in self.canary.rglob("*")) != 4:
            found.append("files were made or deleted")
        self._age()
        return found

    def _linked(self, chance: random.Random) -> str:
        name = chance.choice([each for each in sorted(self.files) if each.startswith("main/hostile")])
        path = self.house / name
        if chance.random() < 0.3:
            path = path.parent / "sub"
        path.unlink(missing_ok=True)
        path.symlink_to(self.canary if path.name == "sub" else self.canary / "id_rsa")
        return f"{path.name} is a link"

    def _all(self) -> list[Path]:
        return [
            Path(folder, name)
            for folder, folders, names in os.walk(self.house)
            for name in (*names, *(each for each in folders if os.path.islink(os.path.join(folder, each))))
        ]

    def _age(self) -> None:
        for path in (*self.canary.rglob("*"), self.canary):
            os.utime(path, ns=(_OLD_NS, 2 * _OLD_NS))


def own_scene(root: Path) -> Scene:
    """Creates a table with a checkpoint, a deletion vector, transactions and clustering, written by this package."""
    house = House(root / "house")
    house.folder.mkdir(parents=True)
    house.create("main.good", rows(0, 3))
    log = house.create("main.hostile", rows(0, 9), {"delta.enableDeletionVectors": "true", "a": "b"})
    house.append(log, rows(9, 3), txn=("stream", 4))
    house.mark(log, [0, 4, 7])
    log.checkpoint(log.snapshot())
    house.append(log, rows(12, 3))
    _put_documents(house.catalog)
    scene = Scene(root)
    scene.remember()
    return scene


def corpus_scenes(root: Path) -> list[Scene]:
    """Returns the same with tables of other engines; empty if the corpus is missing."""
    scenes = []
    for number, path in enumerate(path for path in CORPUS_TABLES if (CORPUS / path).exists()):
        scene = Scene(root / str(number))
        house = House(scene.house)
        house.folder.mkdir(parents=True)
        house.create("main.good", rows(0, 3))
        shutil.copytree(CORPUS / path, scene.house / TABLE)
        scene.remember()
        scenes.append(scene)
    return scenes


def _put_documents(catalog: Catalog) -> None:
    columns = (ViewColumn("id", "the key"), ViewColumn("b"))
    where: dict[str, Any] = {"current_database": "silt", "current_schema": "main", "created_at": 1}
    catalog.put_view(View(_name("seen"), "select id, 1 from hostile", columns, "seen", {"a": "b"}, **where))
    parameters = (Parameter("x", "int", "1", "number"),)
    catalog.put_function(Function(_name("twice"), parameters, "x * 2", "int", True, comment="c", **where))


def _name(identifier: str) -> RelationName:
    return RelationName("silt", "main", identifier)


def _command(*arguments: str) -> Callable[[Path], None]:
    def run(house: Path) -> None:
        said = attacks.silt(House(house), *arguments)
        assert said.code in (0, 1, 2), said.code
        assert "SILT_INTERNAL" not in said.all, said.all
        assert SECRET.decode() not in said.all
        assert "\x1b" not in said.all

    return run


def _report(house: Path) -> None:
    page = house.parent / "page.html"
    _command("report", "--output", str(page))(house)
    text = page.read_text(encoding="utf-8")
    assert "main.good" in text and "SILT_INTERNAL" not in text and SECRET.decode() not in text


def _arrow(house: Path) -> None:
    silt_engine.read("main.hostile", warehouse=str(house))


def _arrow_where(house: Path) -> None:
    silt_engine.read("main.hostile", warehouse=str(house), where="id > 2", version=1)


def catalog_of(house: Path) -> Catalog:
    """Returns the names of the warehouse, opened as a command opens it, so that logs may name its files only."""
    return open_databases({"silt": str(house)}, storages({"silt": str(house)}, None)).catalog


def _names(house: Path) -> None:
    _ask_names(catalog_of(house))


def _ask_names(catalog: Catalog) -> None:
    asks: list[Callable[[], object]] = [
        lambda: catalog.view(_name("seen")),
        lambda: catalog.function(_name("twice")),
        lambda: catalog.functions("silt", "main"),
        lambda: list(catalog.all_tables()),
        *(lambda each=each: Listing("silt", each).rows(catalog, Asked(), lambda name: None) for each in RELATIONS),
    ]
    refused(asks)


def refused(asks: Sequence[Callable[[], object]]) -> None:
    """Runs each call; a SiltError is a valid answer."""
    for ask in asks:
        try:
            ask()
        except SiltError as error:
            assert error.code and error.code != "SILT_INTERNAL", repr(error)


def _vacuum(lite: bool) -> Callable[[Path], None]:
    def run(house: Path) -> None:
        log = catalog_of(house).table(_name("hostile"))
        vacuum(log, Retention(0, is_checked=False), WriteSettings(), lite)

    return run


def _drop(house: Path) -> None:
    catalog_of(house).drop_table(_name("hostile"))


READING: tuple[Callable[[Path], None], ...] = (
    _arrow,
    _arrow_where,
    _names,
    _report,
    _command("show", "main.hostile"),
    _command("show", "main.hostile", "--json"),
    _command("show", "main.hostile", "--rows"),
    _command("show", "main.seen"),
    _command("history", "main.hostile"),
    _command("check"),
    _command("runs"),
)
CHANGING: tuple[Callable[[Path], None], ...] = (_vacuum(lite=True), _vacuum(lite=False), _drop)


def attack(scene: Scene, seed: int, doors: int | None = None) -> None:
    """Damages the warehouse, and reads it in each way.

    Args:
        doors: the number of randomly chosen ways to read; all by default.

    Raises:
        AssertionError: if one did what it may not do; the message contains the seed and the damage.
    """
    chance = random.Random(seed)
    told = scene.damaged(chance)
    asked = READING if doors is None else chance.sample(READING, doors)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with attacks.limited():
            refused([lambda door=door: door(scene.house) for door in (*asked, chance.choice(CHANGING))])  # type: ignore[misc]
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEGABYTES << 10, "memory"
        assert not scene.problems()
        assert scene.is_good_untouched()
    except Exception as error:
        raise AssertionError(f"seed {seed}: {scene.root.name}: {'; '.join(told)}: {error!r}"[:2000]) from error
    finally:
        scene.restored()


FOREIGN = "main/other/data.parquet"


def bucket_documents() -> Files:
    """Returns a bucket's documents of names: of a table, a view and a function."""
    store = MemoryObjectStore()
    catalog = Catalog({"silt": store}, FixedClock())
    catalog.create_schema("silt", "main")
    make_table(catalog, _name("hostile"))
    _put_documents(catalog)
    names = ["_catalog.json", *(status.path for status in store.list_from("_definitions"))]
    return {name: store.read(name) for name in names}


def attack_bucket(documents: Files, seed: int) -> None:
    """Damages the documents of a bucket, then lists its names and changes some.

    Raises:
        AssertionError: if an exception other than a SiltError was raised, or a file of another program was changed.
    """
    chance = random.Random(seed)
    files = dict(documents)
    kinds = (*KINDS, *DEEPER, *[texts_set((FOREIGN, "main/other", "../other", "/etc/passwd", "_catalog.json"))] * 5)
    told = [mutate(files, chance, kinds) for _ in range(chance.choice((1, 1, 2))) if files]
    store = MemoryObjectStore()
    store.put(FOREIGN, SECRET)
    for name, data in files.items():
        store.put(name, data)
    try:
        with attacks.limited():
            _ask_names(Catalog({"silt": store}, FixedClock()))
            catalog = Catalog({"silt": store}, FixedClock(at_ms=1 << 42))
            refused([lambda: make_table(catalog, _name("fresh")), lambda: catalog.drop_table(_name("hostile"))])
            refused([lambda: catalog.drop_schema("silt", "main", cascade=True)])
        assert store.read(FOREIGN) == SECRET
    except Exception as error:
        raise AssertionError(f"seed {seed}: bucket: {'; '.join(told)}: {error!r}"[:2000]) from error

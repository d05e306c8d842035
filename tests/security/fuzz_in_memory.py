"""Very many damaged documents of runs, names and publications: the warehouse is built once, copied in memory for each
door, and only every so many of the warehouses are damaged on disk, where the commands of `silt` read them too.

python -m tests.security.fuzz_in_memory FIRST SEEDS [EVERY]    tries seeds, prints the problems and the counts
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.clock import SystemClock
from tests.corpus.mutations import Files
from tests.memory_store import MemoryStore
from tests.security import attacks, fuzz_runs
from tests.security.fuzz import Scene, refused

SECONDS: Final = 5
"""More seconds of processor time than any door needs in memory."""
_DOORS: Final = 2
_GOOD: Final = RelationName("silt", "main", "good")
_OUTSIDE: Final = "/home/somebody/id_rsa"


@dataclass(frozen=True)
class Copies:
    """A warehouse in memory. Each door gets a copy of it."""

    original: MemoryStore
    files: Files

    @classmethod
    def of(cls, scene: Scene) -> Copies:
        """Reads the undamaged warehouse of a folder."""
        store = MemoryStore(SystemClock())
        for folder, _, _ in os.walk(scene.house):
            path = Path(folder).relative_to(scene.house).as_posix()
            store.make_folder("" if path == "." else path)
        for name, data in scene.files.items():
            store.put(name, data)
        return cls(store, scene.files)

    def damaged(self, documents: Files) -> MemoryStore:
        """Returns a copy with other documents."""
        store = self.copy(self.original)
        for name in self.files:
            if fuzz_runs.is_document(name) and name not in documents:
                store.delete(name)
        for name, data in documents.items():
            if self.files.get(name) != data:
                store.make_folder(name.rpartition("/")[0])
                store.put(name, data)
        return store

    @staticmethod
    def copy(store: MemoryStore) -> MemoryStore:
        """Returns a copy that shares no file with the store."""
        tree, copied = store._tree, MemoryStore()
        copied._tree = replace(
            tree, files=dict(tree.files), folders=dict(tree.folders), folder_times=dict(tree.folder_times)
        )
        return copied

    def check_good(self, store: MemoryStore) -> None:
        """Checks that the other table can be read; a document may state that a run changes or drops it."""
        lost = [name for name in self.files if name.startswith("main/good/") and name not in store._tree.files]
        assert not lost or any("_delta_log" in name for name in lost), lost
        if not lost:
            assert Catalog({"silt": store}).table(_GOOD).snapshot().num_files > 0


def attack(copies: Copies, seed: int) -> int:
    """Damages documents, opens some doors, and reads the other table through each; returns the number of mutations.

    Raises:
        AssertionError: if a door crashed, hung, wrote elsewhere, or made the other table unreadable.
    """
    chance = random.Random(seed)
    documents = {name: data for name, data in copies.files.items() if fuzz_runs.is_document(name)}
    told = fuzz_runs.mutated(documents, chance, _OUTSIDE)
    damaged = copies.damaged(documents)
    for door in chance.sample(fuzz_runs.INSIDE, _DOORS):
        store = copies.copy(damaged)
        try:
            with attacks.limited(SECONDS):
                refused([partial(door, partial(Catalog, {"silt": store}))])
                copies.check_good(store)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {'; '.join(told)}: {door.__name__}: {error!r}"[:3000]) from error
    return len(told)


def attacker(root: Path, every: int) -> attacks.Attack:
    """Returns the attack on the warehouse that it creates.

    Args:
        every: every so many seeds, the same seed also damages the folder that the commands of `silt` read.
    """
    scene = fuzz_runs.scene(root)
    copies = Copies.of(scene)

    def tried(seed: int) -> int:
        mutations = attack(copies, seed)
        if seed % every == 0:
            fuzz_runs.attack(scene, seed)
        return mutations

    return tried


def main(first: str, seeds: str, every: str = "40") -> int:
    """Tries seeds, and prints the problems and the counts; returns 1 if there are any problems."""
    with tempfile.TemporaryDirectory() as folder:
        return attacks.tell(attacker(Path(folder), int(every)), range(int(first), int(first) + int(seeds)))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

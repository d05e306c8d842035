"""Very many damaged documents of runs, names and publications: the warehouse is built once, copied in memory for each
door, and only every so many of the warehouses are damaged on disk, where the commands of `silt` read them too.

python -m tests.security.fuzz_in_memory FIRST SEEDS [EVERY]    tries seeds, prints the problems and the counts
"""

from __future__ import annotations

import json
import logging
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from dbt.adapters.silt.engine.catalog.catalog import Catalog
from dbt.adapters.silt.engine.catalog.names import RelationName
from dbt.adapters.silt.engine.kernel.clock import SystemClock
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.storage.memory_store import MemoryStore
from tests.corpus.mutations import Files
from tests.security import attacks, fuzz_runs
from tests.security.fuzz import Scene

SECONDS: Final = 5
"""More seconds of processor time than any door needs in memory."""
_DOORS: Final = 2
_GOOD: Final = RelationName("silt", "main", "good")
_OUTSIDE: Final = "/home/somebody/id_rsa"


@dataclass(frozen=True)
class Copies:
    """A warehouse in memory, of which each door gets a copy."""

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
                _open(door, store)
                copies.check_good(store)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {'; '.join(told)}: {door.__name__}: {error!r}"[:3000]) from error
    return len(told)


def _open(door: Callable[[fuzz_runs.Open], None], store: MemoryStore) -> None:
    try:
        door(lambda: Catalog({"silt": store}))
    except SiltError as error:
        assert error.code and error.code != "SILT_INTERNAL", repr(error)


def problems(root: Path, seeds: Iterable[int], every: int) -> Iterator[tuple[int, str | None]]:
    """Yields for each seed the number of its mutations, and the problem that it shows, if any.

    Args:
        every: every so many seeds, the same seed also damages the folder that the commands of `silt` read.
    """
    scene = fuzz_runs.scene(root)
    copies = Copies.of(scene)
    for seed in seeds:
        try:
            yield attack(copies, seed), None
            if seed % every == 0:
                fuzz_runs.attack(scene, seed)
        except AssertionError as error:
            yield 0, str(error)


def main(first: str, seeds: str, every: str = "40") -> int:
    """Tries seeds, and prints the problems and the counts; returns 1 if there are any problems."""
    logging.disable()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        tried = range(int(first), int(first) + int(seeds))
        for mutations, problem in problems(Path(folder), tried, int(every)):
            counts["seeds"] += 1
            counts["mutations"] += mutations
            if problem is not None:
                counts["problems"] += 1
                print(json.dumps(problem), flush=True)
            if counts["seeds"] % 1_000 == 0:
                print(dict(counts), flush=True)
    print(dict(counts))
    return int(counts["problems"] > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

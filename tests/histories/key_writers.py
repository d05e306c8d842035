"""Threads and processes that write overlapping keys through several doors, with kills: no key is ever twice.

python -m tests.histories.key_writers --seconds 180

Three processes write to one table with an enforced key: four threads that run SQL and transactions, a program that
writes by the data source, and dbt commands whose runs are published after their tests. Each process is killed at random
moments and started again. Then each version of the table is read, and the rows of which a writer was told that they
are committed are looked for.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from dbt.adapters.silt import engine as silt
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.catalog.open_databases import open_databases
from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.kernel.files import deletion_vectors
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.settings import Storages
from dbt.adapters.silt.engine.warehouse import Warehouse, WarehouseSettings
from dbt.adapters.silt.session.spark import SessionSettings, open_session
from tests.simulation.processes import on_threads

KEYS: Final = 80
THREADS: Final = 4
_LONGEST: Final = {"sql": 40.0, "data source": 40.0, "dbt": 150.0}
"""How long a process lives at most after its first answer, or a dbt command after its start, in seconds."""
_CONF: Final = {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "1"}
_SPARK: Final = SessionSettings("local[2]", spark_conf=_CONF)
_SETTINGS: Final = WarehouseSettings(statement_attempts=10)
_TABLE: Final = "main.keyed"
_CREATE: Final = f"create table {_TABLE} (id bigint primary key enforced, note string)"
_PROJECT: Final = {
    "dbt_project.yml": "{name: keys, version: 1.0.0, profile: keys, model-paths: [models]}",
    "models/keyed.sql": "{{ config(materialized='incremental', incremental_strategy=var('how'), unique_key='id') }}\n"
    "select explode(array({{ var('keys') }})) as id, '{{ var('note') }}' as note",
}


@dataclass
class Figures:
    """The counts of a run."""

    answers: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    versions: int = 0
    rows: int = 0

    def __str__(self) -> str:
        return f"{self.versions} versions, {self.rows} rows, kills {dict(self.kills)}, answers {dict(self.answers)}"


@dataclass
class _Life:
    """A process, and when it is killed: some time after its first answer, or after the start of a dbt command."""

    process: subprocess.Popen[bytes]
    chance: random.Random
    longest: float
    size: int = 0
    end: float | None = None

    def is_over(self, size: int) -> bool:
        """Returns whether it is to be killed, by the size of its journal."""
        if self.end is None and size != self.size:
            self.end = time.monotonic() + self.chance.uniform(1, self.longest)
        return self.end is not None and time.monotonic() > self.end


def _size(folder: Path, name: str) -> int:
    """Returns the size of a process' journal, or of the log of dbt commands, which grows when a model begins."""
    path = folder / ("dbt.log" if name == "dbt" else f"{name}.jsonl")
    return path.stat().st_size if path.exists() else 0


def run(folder: Path, seconds: float, seed: int = 1) -> Figures:
    """Lets the processes write for some time, and checks the table.

    Raises:
        AssertionError: if a version has a key twice, or lacks a row that its writer was told is committed.
    """
    _prepare(folder)
    figures, chance = Figures(), random.Random(seed)
    starts: Mapping[str, Callable[[int], subprocess.Popen[bytes]]] = {
        "sql": lambda number: _worker(folder, "sql", number),
        "data source": lambda number: _worker(folder, "data source", number),
        "dbt": lambda number: _dbt(folder, chance, number),
    }
    end = time.monotonic() + seconds
    running = {name: _Life(start(0), chance, _LONGEST[name]) for name, start in starts.items()}
    numbers = itertools.count(1)
    try:
        while time.monotonic() < end:
            time.sleep(0.1)
            for name, life in list(running.items()):
                ended = life.process.poll()
                if ended is None and not life.is_over(_size(folder, name)):
                    continue
                _kill(life.process)
                if ended is None:
                    figures.kills[name] += 1
                elif name == "dbt":
                    figures.answers[f"dbt ended with {ended}"] += 1
                running[name] = _Life(starts[name](next(numbers)), chance, _LONGEST[name], _size(folder, name))
    finally:
        for life in running.values():
            _kill(life.process)
    _check(folder, figures)
    return figures


def _prepare(folder: Path) -> None:
    for name, text in _PROJECT.items():
        (folder / "project" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "project" / name).write_text(text)
    target = {
        "type": "silt",
        "warehouse": str(folder / "warehouse"),
        "schema": "main",
        "publish": "after_tests",
        "threads": 1,
        "spark_conf": _CONF,
    }
    profile = {"keys": {"target": "dev", "outputs": {"dev": target}}}
    (folder / "project" / "profiles.yml").write_text(json.dumps(profile))
    subprocess.run([*_python("create"), str(folder), "0"], check=True, cwd=_ROOT)


_ROOT: Final = Path(__file__).parents[2]


def _python(role: str) -> list[str]:
    return [sys.executable, "-m", "tests.histories.key_writers", "--work", role]


def _worker(folder: Path, role: str, number: int) -> subprocess.Popen[bytes]:
    with (folder / f"{role}.log").open("ab") as log:
        command = [*_python(role), str(folder), str(number)]
        return subprocess.Popen(command, cwd=_ROOT, start_new_session=True, stdout=log, stderr=log)


def _dbt(folder: Path, chance: random.Random, number: int) -> subprocess.Popen[bytes]:
    keys = ", ".join(f"{each}L" for each in chance.sample(range(KEYS), 4))
    variables = {"keys": keys, "note": f"dbt {number}", "how": chance.choice(("append", "merge"))}
    command = [str(Path(sys.executable).with_name("dbt")), "run", "--vars", json.dumps(variables)]
    with (folder / "dbt.log").open("ab") as log:
        return subprocess.Popen(command, cwd=folder / "project", start_new_session=True, stdout=log, stderr=log)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def work(role: str, folder: Path, number: int) -> None:
    """Writes through one door until the process is killed; each answer is a line of the role's journal."""
    warehouse = Warehouse(open_session(_SPARK), str(folder / "warehouse"), settings=_SETTINGS)
    if role == "create":
        warehouse.sql(_CREATE)
        return
    starter = os.getppid()
    with (folder / f"{role}.jsonl").open("a", buffering=1) as journal:

        def live(thread: int) -> None:
            chance = random.Random(f"{role} {number} {thread}")
            own = warehouse if role != "sql" else warehouse.for_session(warehouse.spark.newSession())
            for step in itertools.takewhile(lambda _: os.getppid() == starter, itertools.count()):
                keys = sorted(chance.sample(range(KEYS), chance.randrange(1, 5)))
                note = f"{role} {number} {thread} {step}"
                try:
                    if role == "sql":
                        _by_sql(own, chance, keys, note)
                    else:
                        _by_data_source(own, folder, keys, note)
                except SiltError as error:
                    journal.write(json.dumps([type(error).__name__, []]) + "\n")
                except Exception as error:
                    refused = "SILT_KEY_VIOLATION" in str(error) or "SILT_CONCURRENT" in str(error)
                    journal.write(json.dumps(["refused" if refused else repr(error)[:200], []]) + "\n")
                else:
                    journal.write(json.dumps(["done", keys]) + "\n")

        on_threads(THREADS if role == "sql" else 1, live)


def _by_sql(warehouse: Warehouse, chance: random.Random, keys: list[int], note: str) -> None:
    rows = ", ".join(f"({key}L, '{note}')" for key in keys)
    insert = f"insert into {_TABLE} values {rows}"
    merge = (
        f"merge into {_TABLE} as t using (select * from values {rows} as s(id, note)) as s on t.id = s.id "
        "when matched then update set note = s.note when not matched then insert *"
    )
    kind = chance.choice(("insert", "insert", "merge", "transaction"))
    if kind == "transaction":
        with warehouse.transaction() as together:
            together.sql(insert)
            together.sql(merge)
    else:
        warehouse.sql(insert if kind == "insert" else merge)


def _by_data_source(warehouse: Warehouse, folder: Path, keys: list[int], note: str) -> None:
    silt.DataSource.register(warehouse.spark)
    rows = warehouse.spark.createDataFrame([(key, note) for key in keys], "id bigint, note string")
    writer = rows.write.format("silt").mode("append").option("warehouse", str(folder / "warehouse"))
    writer.save(_TABLE)


def _check(folder: Path, figures: Figures) -> None:
    catalog = open_databases({"silt": str(folder / "warehouse")}, Storages()).catalog
    log = catalog.table(RelationName("silt", "main", "keyed"))
    newest, known = log.snapshot(), dict[str, list[int]]()
    for version in range(newest.version + 1):
        counts = _keys(log, version, known)
        assert max(counts.values(), default=1) == 1, f"version {version} has keys twice: {counts.most_common(5)}"
    figures.versions, figures.rows = newest.version, len(counts)
    for path in folder.glob("*.jsonl"):
        for line in path.read_text().splitlines():
            with contextlib.suppress(json.JSONDecodeError):  # the line of a killed process
                answer, keys = json.loads(line)
                figures.answers[f"{path.stem}: {answer}"] += 1
                assert counts.keys() >= set(keys), f"{path.stem} was told that {keys} are committed"


def _keys(log: DeltaLog, version: int, known: dict[str, list[int]]) -> Counter[int]:
    counts = Counter[int]()
    for add in log.snapshot_at(version).add_files():
        if add.path not in known:
            known[add.path] = pq.read_table(Path(log.store.root, add.path), columns=["id"])["id"].to_pylist()
        vector = add.deletion_vector
        gone = () if vector is None else deletion_vectors.read(log.store, [vector], log.name)[vector.unique_id]
        counts.update(key for at, key in enumerate(known[add.path]) if at not in gone)
    return counts


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seconds", type=float, default=180)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--work", nargs=3, metavar=("ROLE", "FOLDER", "NUMBER"), help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.work is not None:
        role, folder, number = chosen.work
        work(role, Path(folder), int(number))
        return
    with tempfile.TemporaryDirectory() as made:
        print(run(Path(made), chosen.seconds, chosen.seed))


if __name__ == "__main__":
    main()

"""Random numbers in each place of a table's log: in statistics, partition values, checkpoints and other fields, of each
type, read from memory; every so many of the logs are read from a folder too, with rows, by `silt` and Arrow.

python -m tests.security.fuzz_numbers FIRST SEEDS [EVERY]    tries seeds, prints the problems and the counts
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

from dbt.adapters.silt import engine as silt_engine
from dbt.adapters.silt.cli import show
from dbt.adapters.silt.engine.arrow.read import TableRead, condition
from dbt.adapters.silt.engine.kernel.clock import SystemClock
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.log.snapshot import Snapshot
from dbt.adapters.silt.engine.kernel.maintenance.log_check import check_log
from dbt.adapters.silt.engine.kernel.rows.scan import ArrowScan
from dbt.adapters.silt.engine.kernel.scan import min_max, skipping
from dbt.adapters.silt.engine.kernel.table.expressions import TRUE, Expression
from dbt.adapters.silt.engine.kernel.table.paths import LOG_FOLDER
from dbt.adapters.silt.report import table_content
from dbt.adapters.silt.report.tables import table_json, to_json
from tests.memory_store import MemoryStore
from tests.security import attacks
from tests.security.attacks import DOORS, log_folder, silt
from tests.security.fuzz import refused
from tests.security.fuzz_in_memory import Copies
from tests.security.logs.damaged_numbers import FILES, FOLDER, KINDS, MODIFIED_MS, NAME, Kind, Logs, append
from tests.unit.cli.house import House, rows

SECONDS: Final = 5
_DOORS: Final = 2
_NUMBERS: Final = 3


def _shown(log: DeltaLog, kind: Kind) -> None:
    json.dumps(show.answer(log, log.snapshot()).document, allow_nan=False)


def _reported(log: DeltaLog, kind: Kind) -> None:
    content = table_content.content_of(log, ("x", "p"))
    json.loads(to_json(table_json(log.name, content)), parse_constant=_refuse)


def _refuse(constant: str) -> NoReturn:
    raise AssertionError(f"the page contains {constant}, which no browser reads")


def _skipped(log: DeltaLog, kind: Kind) -> None:
    snapshot = log.snapshot()
    found = condition(kind.condition, snapshot, log.name)
    skipping.prune(snapshot, found)
    skipping.fully_matched(snapshot, found)
    min_max.extremes(snapshot, snapshot.files, ("x", "p"))


def _rows_read(log: DeltaLog, kind: Kind) -> None:
    snapshot = log.snapshot()
    for chosen in (condition(kind.condition, snapshot, log.name), TRUE):
        refused([partial(_head, log, snapshot, chosen)])


def _head(log: DeltaLog, snapshot: Snapshot, wanted: Expression) -> None:
    TableRead(log, snapshot, ArrowScan.of(snapshot, None, wanted)).head(9)


def _written(log: DeltaLog, kind: Kind) -> None:
    """Continues the log, with a checkpoint and a checksum of its content."""
    append(log, kind.add(FILES[0]))
    log.checkpoint(log.snapshot())
    DeltaLog(log.store, log.name, log.clock).snapshot()


def _checked(log: DeltaLog, kind: Kind) -> None:
    list(check_log(log.store, log.name))


INSIDE: Final = (_shown, _reported, _skipped, _rows_read, _written, _checked)


def attack(logs: Logs, seed: int) -> int:
    """Puts numbers into files of the log, and opens some doors; returns the number of mutations.

    Raises:
        AssertionError: if a door crashed or hung.
    """
    chance = random.Random(seed)
    found = {name: (data, told) for name, data, told in (logs.damaged(chance) for _ in range(_NUMBERS))}
    told = "; ".join(each for _, each in found.values())
    damaged = logs.base(chance, max(found, key=lambda name: name.endswith(".parquet")))
    for name, (data, _) in found.items():
        damaged.put(f"{FOLDER}/{LOG_FOLDER}/{name}", data)
    for door in chance.sample(INSIDE, _DOORS):
        log = DeltaLog(Copies.copy(damaged).child(FOLDER), str(NAME), SystemClock())
        try:
            with attacks.limited(SECONDS):
                refused([partial(door, log, logs.kind)])
        except Exception as error:
            raise AssertionError(f"seed {seed}: {logs.kind.name}: {told}: {door.__name__}: {error!r}"[:3000]) from error
    return len(found)


def attack_folder(logs: Logs, house: House, seed: int) -> None:
    """Puts a number into the log of a folder, which the commands of `silt` and Arrow read."""
    name, data, told = logs.damaged(random.Random(seed))
    path = log_folder(house) / name
    before = path.read_bytes()
    path.write_bytes(data)
    path.with_name(f".{name}.crc").unlink(missing_ok=True)
    try:
        for said in (silt(house, *door) for door in DOORS):
            assert said.code in (0, 1, 2) and "SILT_INTERNAL" not in said.all, said.all
        refused([lambda: silt_engine.read("main.hostile", str(house.folder), where=logs.kind.condition)])
        assert silt(house, "show", "main.good", "--rows").code == 0
    except Exception as error:
        raise AssertionError(f"seed {seed} in a folder: {logs.kind.name}: {told}: {error!r}"[:3000]) from error
    finally:
        path.write_bytes(before)


def in_folder(store: MemoryStore, folder: Path) -> House:
    """Writes the warehouse into a folder, with another table."""
    for each in store.files_below(""):
        path = folder / each.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(store.read(each.path))
        os.utime(path, ns=(MODIFIED_MS * 1_000_000, MODIFIED_MS * 1_000_000))
    house = House(folder)
    house.create("main.good", rows(0, 3))
    return House(folder)


def attacker(root: Path, every: int) -> attacks.Attack:
    """Returns the attack on the logs that it creates.

    Args:
        every: every so many seeds, the same seed also damages a folder.
    """
    all_logs = [Logs(kind) for kind in KINDS]
    houses = [in_folder(logs.original, root / logs.kind.name) for logs in all_logs]

    def tried(seed: int) -> int:
        mutations = attack(all_logs[seed % len(KINDS)], seed)
        if seed % every == 0:
            chosen = seed // every % len(KINDS)
            attack_folder(all_logs[chosen], houses[chosen], seed)
        return mutations

    return tried


def main(first: str, seeds: str, every: str = "100") -> int:
    """Tries seeds, and prints the problems and the counts; returns 1 if there are any problems."""
    with tempfile.TemporaryDirectory() as folder:
        return attacks.tell(attacker(Path(folder), int(every)), range(int(first), int(first) + int(seeds)))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

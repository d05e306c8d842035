"""What another user of the machine, who may only read the warehouse, can hold up."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.catalog.folders.locks import LOCK_FILE
from tests.security.attacks import limited
from tests.unit.cli.house import House, rows

_NOBODY = 65534
HOLDER = f"""
import fcntl, os, sys
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid({_NOBODY})
    os.setuid({_NOBODY})
held = []
for folder, _, files in os.walk("."):
    for path in [folder, *(os.path.join(folder, file) for file in files)]:
        try:
            held.append(os.open(path, os.O_RDONLY))
            fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except PermissionError:
            print("refused", os.path.basename(path), flush=True)
print("held", len(held), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def house(tmp_path: Path) -> House:
    """A warehouse that all may read, in which names were changed."""
    house = House(tmp_path / "house")
    house.folder.mkdir(mode=0o755)
    house.create("main.orders", rows(0, 3))
    for folder, _, _ in os.walk(house.folder):
        os.chmod(folder, 0o755)
    return house


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_who_may_only_read_stops_no_change_of_names(house: House) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], cwd=house.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        said = [holder.stdout.readline()]
        while not said[-1].startswith("held"):
            said.append(holder.stdout.readline())
        assert int(said[-1].split()[1]) > 3
        assert f"refused {LOCK_FILE}\n" in said
        with limited(10):
            house.create("main.more", rows(0, 1))
            house.catalog.rename(house.name("main.more"), house.name("main.renamed"))
            house.catalog.drop_table(house.name("main.renamed"))
            house.catalog.create_schema(house.database, "other")
        holder.kill()


@pytest.mark.parametrize(
    ("folder", "expected"), [(0o755, 0o600), (0o775, 0o660), (0o777, 0o666), (0o700, 0o600), (0o750, 0o600)]
)
def test_those_can_open_the_lock_who_may_write_in_the_folder(folder: int, expected: int, house: House) -> None:
    schema = house.folder / "main"
    (schema / LOCK_FILE).unlink(missing_ok=True)
    os.chmod(schema, folder)
    house.create("main.more", rows(0, 1))
    assert stat.S_IMODE((schema / LOCK_FILE).stat().st_mode) == expected

"""Files and folders that another user owns, and that this user may not read, are errors of their own objects; so are a
full disk, little memory and folders that vanish.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.catalog.branches import attempts as branch_attempts
from dbt.adapters.silt.engine.kernel import errors
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore
from tests.security import attacks, fuzz, fuzz_runs
from tests.unit.cli.house import House
from tests.unprivileged import ROOT, run_unprivileged

LISTS = (("check", "--json"), ("runs",), ("report", "--output", "page.html"), ("sql", "select 1 as one"))
CODE = f"""
import sys
from dbt.adapters.silt.cli.main import main
codes = [main([*command, "--warehouse", "house"]) for command in {LISTS}]
print("codes", codes)
print("good", main(["show", "main.good", "--rows", "--warehouse", "house"]))
"""


def path_of(scene: fuzz.Scene, text: str) -> Path:
    """Returns a path of the warehouse; `RUN` is the run's document, and `BRANCH` the folder of its branch."""
    branch = fuzz.catalog_of(scene.house).run_branches("silt").find("night").branch
    run = next((scene.house / "_branches" / "runs").glob("*.json")).name
    return scene.house / text.replace("RUN", f"_branches/runs/{run}").replace("BRANCH", f"_branches/{branch}")


@pytest.mark.parametrize(
    "what",
    [
        *("main/hostile", "main/hostile/_delta_log", "main/hostile/_delta_log/00000000000000000000.json"),
        *("main/seen.view.json", "main/twice.function.json", "main/other_seen.view.next.json", "old", "_publications"),
        *("RUN", "BRANCH", "BRANCH/main", "_branches", "_branches/runs", "_tests"),
    ],
)
def test_lists_go_on_beside_a_file_or_folder_that_this_user_may_not_read(what: str, tmp_path: Path) -> None:
    path = path_of(fuzz_runs.scene(tmp_path), what)
    before = path.stat().st_mode
    path.chmod(0)
    try:
        done = run_unprivileged(CODE, tmp_path)
    finally:
        path.chmod(before)
    codes = next(line for line in done.stdout.splitlines() if line.startswith("codes"))
    assert set(codes) <= set("codes [01,]"), f"{codes}: {done.stderr}"
    assert "good 0" in done.stdout and "SILT_INTERNAL" not in done.stdout + done.stderr, done.stderr
    assert "silt.main.good" in done.stdout and "main.good" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_lists_go_on_beside_a_folder_whose_marker_is_a_link(tmp_path: Path) -> None:
    scene = fuzz_runs.scene(tmp_path)
    (scene.house / "other").mkdir()
    (scene.house / "other" / "_schema.json").symlink_to(scene.canary / "id_rsa")
    for command in (("check",), ("runs",), ("show", "main.good")):
        assert attacks.silt(House(scene.house), *command).code == 0, command
    assert fuzz.catalog_of(scene.house).schemas("silt") == ["main", "old"]
    assert not scene.problems()


def test_an_old_branch_that_cannot_be_deleted_stops_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = fuzz_runs.scene(tmp_path)
    (scene.house / "_branches" / "1" / "main").mkdir(parents=True)
    real = LocalStore.delete_folder

    def denied(store: LocalStore, folder: str) -> None:
        if folder == f"{branch_attempts.FOLDER}/1":
            raise errors.ReadOnlyStorageError(f"deleting {folder} failed")
        real(store, folder)

    monkeypatch.setattr(LocalStore, "delete_folder", denied)
    catalog = fuzz.catalog_of(scene.house)
    runs = catalog.run_branches("silt")
    assert runs.open(fuzz_runs.RUN)[0].run_id == "night"
    assert catalog.new_branch("silt").id


def test_names_and_tables_that_vanish_while_they_are_changed_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = fuzz_runs.scene(tmp_path)
    runs = fuzz.catalog_of(scene.house).run_branches("silt")
    run = runs.find("night")
    listed = branch_attempts.documents
    gone = f"_branches/{run.branch}/gone.name.json"
    monkeypatch.setattr(branch_attempts, "documents", lambda *given: [*listed(*given), gone])
    with pytest.raises(errors.ConcurrentModificationError, match="published or dropped these changes"):
        runs.existing(run)
    real = LocalStore.pin

    def moved(store: LocalStore, folder: str) -> object:
        if store.root.endswith("hostile"):
            (scene.house / "main" / "hostile").rename(scene.house / "main" / "moved")
        return real(store, folder)

    monkeypatch.setattr(LocalStore, "pin", moved)
    with pytest.raises(errors.RelationNotFoundError, match=r"silt\.main\.hostile"):
        fuzz._drop(scene.house)


COMMANDS = (
    *(("show", "main.hostile", "--rows"), ("history", "main.hostile")),
    *(("check", "--data"), ("runs",), ("report",)),
)
IN_ORDER = f"""
from dbt.adapters.silt.cli.main import main
print([main([*each, "--warehouse", "house"]) for each in {COMMANDS}])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the address space")
def test_commands_need_less_than_two_gigabytes_of_addresses(tmp_path: Path) -> None:
    fuzz_runs.scene(tmp_path)
    most = 2 << 30
    done = subprocess.run(
        [sys.executable, "-c", IN_ORDER],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout.endswith("[0, 0, 0, 0, 0]\n") and "MemoryError" not in done.stderr, done.stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a few megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this user may not mount a file system")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


CHANGES: dict[str, Callable[[Path], None]] = {
    "publish": lambda house: fuzz_runs._published(partial(fuzz.catalog_of, house)),
    "drop-run": lambda house: fuzz_runs._dropped(partial(fuzz.catalog_of, house)),
    "vacuum": fuzz._vacuum(lite=False),
    "append": lambda house: fuzz_runs._opened(partial(fuzz.catalog_of, house)),
}


def test_a_full_disk_stops_changes_only_and_leaves_nothing_behind(small_disk: Path) -> None:
    scene = fuzz_runs.scene(small_disk)
    logs = set(scene.house.rglob("_delta_log/*.json"))
    with (small_disk / "rest").open("wb", buffering=0) as rest, pytest.raises(OSError, match="No space"):
        while rest.write(bytes(4096)):
            pass
    for name, change in CHANGES.items():
        with pytest.raises(errors.NoSpaceError):
            change(scene.house)
        assert logs <= set(scene.house.rglob("*")) and not list(scene.house.rglob("*.tmp")), name
    house = House(scene.house)
    for command in (("show", "main.hostile", "--rows"), ("runs",), ("history", "main.hostile")):
        assert attacks.silt(house, *command).code == 0, command
    checked = attacks.silt(house, "check", "--data")
    assert checked.code == 1 and "is missing, and run night needs it" in checked.out  # the vacuum knew no run
    fuzz._drop(scene.house)
    (small_disk / "rest").unlink()
    assert attacks.silt(house, "check").code == 0

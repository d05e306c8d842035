"""Randomly damaged warehouses: no command crashes, hangs, takes much memory, or touches a file outside of the
warehouse.

`SILT_ATTACKS` is the number of warehouses that the long tests damage, `SILT_ATTACKS_ON_RUNS` is the number of those
with damaged documents of runs, and `SILT_FIRST_SEED` is the first seed.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.security import fuzz, fuzz_in_memory, fuzz_names, fuzz_numbers, fuzz_runs
from tests.security.attacks import problems

ROUNDS, DOORS = 20, 3
ATTACKS = int(os.environ.get("SILT_ATTACKS", "4000"))
RUNS = int(os.environ.get("SILT_ATTACKS_ON_RUNS", "10000"))
FIRST = int(os.environ.get("SILT_FIRST_SEED", "0"))
SAMPLE, SAMPLE_OF_BUCKETS, SAMPLE_OF_RUNS = 60, 300, 80


def test_a_few_damaged_warehouses_are_read_or_refused_safely(tmp_path: Path) -> None:
    scene = fuzz.own_scene(tmp_path)
    for seed in range(SAMPLE):
        fuzz.attack(scene, seed, doors=1)


def test_a_few_damaged_documents_of_a_bucket_are_read_or_refused_safely() -> None:
    documents = fuzz.bucket_documents()
    for seed in range(SAMPLE_OF_BUCKETS):
        fuzz.attack_bucket(documents, seed)


def test_a_few_damaged_documents_of_runs_are_read_or_refused_safely(tmp_path: Path) -> None:
    assert not list(problems(fuzz_in_memory.attacker(tmp_path, every=8), range(SAMPLE_OF_RUNS)))


def test_a_few_numbers_in_a_log_are_read_or_refused_safely(tmp_path: Path) -> None:
    assert not list(problems(fuzz_numbers.attacker(tmp_path, every=20), range(SAMPLE)))


@pytest.mark.parametrize("place", fuzz_names.PLACES, ids=lambda place: place.__name__)
def test_names_of_any_text_stay_as_they_are_wherever_they_are_rendered(
    place: Callable[[fuzz_names.Texts], None],
) -> None:
    for seed in range(SAMPLE):
        place(fuzz_names.Texts.drawn(random.Random(seed)))


@pytest.mark.long
@pytest.mark.parametrize("number", range(ROUNDS))
def test_many_damaged_documents_of_runs_are_read_or_refused_safely(number: int, tmp_path: Path) -> None:
    seeds = range(FIRST + number * RUNS // ROUNDS, FIRST + (number + 1) * RUNS // ROUNDS)
    assert not list(problems(fuzz_in_memory.attacker(tmp_path / "documents", every=40), seeds))
    in_logs = fuzz_numbers.attacker(tmp_path / "numbers", every=40)
    assert not list(problems(in_logs, seeds[:: len(fuzz_numbers.KINDS) + 1]))  # type: ignore[attr-defined]
    for seed in seeds[::4]:
        fuzz_names.attack(seed)


def test_undamaged_documents_of_runs_are_read_by_each_door(tmp_path: Path) -> None:
    found = fuzz_runs.scene(tmp_path)
    for door in fuzz_runs.DOORS:
        door(found.house)
        assert not found.problems()
        found.restored()


@pytest.mark.long
@pytest.mark.parametrize("number", range(ROUNDS))
def test_many_damaged_warehouses_are_read_or_refused_safely(number: int, tmp_path: Path) -> None:
    scenes = [fuzz.own_scene(tmp_path / "own"), *fuzz.corpus_scenes(tmp_path / "corpus")]
    documents = fuzz.bucket_documents()
    for index in range(ATTACKS // ROUNDS):
        seed = FIRST + number * ATTACKS // ROUNDS + index
        fuzz.attack(scenes[index % len(scenes)], seed, DOORS)
        fuzz.attack_bucket(documents, seed)


def test_changes_to_the_folder_next_to_the_warehouse_are_detected(tmp_path: Path) -> None:
    scene = fuzz.own_scene(tmp_path)
    assert scene.problems() == []
    (scene.canary / "id_rsa").unlink()
    assert scene.problems()
    (scene.canary / "id_rsa").write_bytes(fuzz.SECRET)
    assert scene.problems()
    assert scene.problems() == []
    (scene.canary / "new").touch()
    assert scene.problems()


def test_a_read_is_detected_if_the_file_system_records_access_times(tmp_path: Path) -> None:
    probe = tmp_path / "probe"
    probe.write_bytes(b"x")
    os.utime(probe, (1, 2))
    probe.read_bytes()
    scene = fuzz.own_scene(tmp_path / "scene")
    (scene.canary / "sub" / "letter.json").read_bytes()
    assert bool(scene.problems()) == (probe.stat().st_atime != 1)


def test_the_undamaged_files_are_restored(tmp_path: Path) -> None:
    scene = fuzz.own_scene(tmp_path)
    for seed in range(8):
        fuzz.attack(scene, seed, doors=1)
    assert fuzz.attacks.silt(fuzz.House(scene.house), "check").code == 0  # type: ignore[attr-defined]

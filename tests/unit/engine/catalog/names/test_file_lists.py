"""The fingerprint of files outside of tables: it differs if Spark, which follows links, would read something else.

A random history of a folder compares fingerprints with what a reader that follows links finds.
"""

from __future__ import annotations

import glob
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dbt.adapters.silt.engine.catalog.names import file_lists
from dbt.adapters.silt.engine.catalog.names.file_lists import fingerprint
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore


def seen(path: Path | str) -> str | None:
    return fingerprint(str(path), LocalStore)


def days(place: Path) -> Path:
    """Creates two folders with one file each, of the same size and time, and a folder `in`."""
    for day in ("day1", "day2"):
        (place / day).mkdir()
        (place / day / "f.csv").write_text(f"{day}\n")
        os.utime(place / day / "f.csv", ns=(0, 0))
    (place / "in").mkdir()
    return place / "in"


def switched(link: Path, target: Path | str) -> None:
    link.unlink(missing_ok=True)
    link.symlink_to(target)


@pytest.mark.parametrize(
    "pattern", ["in/*/*.csv", "in", "in/*", "in/{current,x}/f.csv", "in/current/*.csv", "in/curren[t]"]
)
def test_a_linked_folder_counts_by_what_is_behind_it(tmp_path: Path, pattern: str) -> None:
    inside = days(tmp_path)
    switched(inside / "current", "../day1")
    before = seen(tmp_path / pattern)
    switched(inside / "current", "../day2")
    after = seen(tmp_path / pattern)
    assert None not in (before, after) and before != after
    switched(inside / "current", tmp_path / "day1")
    assert seen(tmp_path / pattern) == before
    (tmp_path / "day1" / "f.csv").write_text("another size")
    assert seen(tmp_path / pattern) not in (before, None)


@pytest.mark.parametrize("pattern", ["in/*.csv", "in", "in/f.csv"])
def test_a_linked_file_counts_by_its_content(tmp_path: Path, pattern: str) -> None:
    inside = days(tmp_path)
    switched(inside / "f.csv", "../day1/f.csv")
    before = seen(tmp_path / pattern)
    (tmp_path / "day1" / "f.csv").write_text("edited")
    edited = seen(tmp_path / pattern)
    switched(inside / "f.csv", "../day2/f.csv")
    assert None not in (before, edited) and len({before, edited, seen(tmp_path / pattern)}) == 3


def test_a_link_to_a_link_counts_by_its_end(tmp_path: Path) -> None:
    inside = days(tmp_path)
    switched(inside / "current", "../latest")
    switched(tmp_path / "latest", "day1")
    before = seen(inside)
    switched(tmp_path / "latest", "day2")
    assert seen(inside) not in (before, None)


def test_a_link_before_the_pattern_counts(tmp_path: Path) -> None:
    days(tmp_path)
    switched(tmp_path / "latest", "day1")
    before = seen(tmp_path / "latest" / "*.csv"), seen(tmp_path / "latest"), seen(tmp_path / "latest" / "f.csv")
    switched(tmp_path / "latest", "day2")
    after = seen(tmp_path / "latest" / "*.csv"), seen(tmp_path / "latest"), seen(tmp_path / "latest" / "f.csv")
    assert all(a != b and None not in (a, b) for a, b in zip(before, after, strict=True))


def test_a_link_that_leads_nowhere_counts_when_it_leads_somewhere(tmp_path: Path) -> None:
    inside = days(tmp_path)
    before = seen(inside)
    switched(inside / "later", "../day3")
    assert seen(inside) == before is not None
    shutil.copytree(tmp_path / "day1", tmp_path / "day3")
    assert seen(inside) not in (before, None)


def test_links_in_a_circle_have_no_fingerprint(tmp_path: Path) -> None:
    inside = days(tmp_path)
    switched(inside / "again", "../in")
    assert seen(inside) is None
    assert seen(inside / "*" / "*.csv") is not None, "Spark does not follow the circle either"
    assert seen(inside / "{x,y/z}" / "*.csv") is None
    switched(inside / "again", "again")
    assert seen(inside) is None


def test_links_that_lead_to_a_folder_in_very_many_ways_have_no_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_lists, "_MOST_LINKED", 50)
    for number in range(8):
        (tmp_path / f"{number}").mkdir()
        for name in ("a", "b"):
            switched(tmp_path / f"{number}" / name, f"../{number + 1}")
    assert seen(tmp_path / "3") is not None
    assert seen(tmp_path / "0") is None


def test_a_pipe_is_not_opened_and_has_no_fingerprint(tmp_path: Path) -> None:
    inside = days(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    switched(inside / "pipe.csv", "../pipe")
    assert seen(inside) is None and seen(inside / "*.csv") is None
    assert seen(inside / "*.json") is not None


@pytest.mark.parametrize(
    ("pattern", "named", "others"),
    [
        ("*.csv", ["a.csv", "a.csv/part"], ["a.json", "x/a.csv"]),
        ("*/*.csv", ["x/a.csv"], ["a.csv", "x/y/a.csv"]),
        ("x//*", ["x/a", "x/a/b"], ["y/a"]),
        ("{x,y/z}/*.csv", ["x/a.csv", "y/z/a.csv"], ["x/a.json"]),
        ("{x,{y,z}}/a", ["x/a", "y/a", "z/a"], ["x/b"]),
        ("a?c/[xyz]", ["abc/x"], ["abbc/x", "abc/xx"]),
        (r"a\*b", ["a*b"], ["axb"]),
    ],
)
def test_a_pattern_names_at_least_what_hadoop_finds(
    tmp_path: Path, pattern: str, named: list[str], others: list[str]
) -> None:
    empty = seen(tmp_path / pattern)
    for path, counts in [*((each, True) for each in named), *((each, False) for each in others)]:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("1")
        assert (seen(tmp_path / pattern) != empty) is counts, path
        for each in tmp_path.iterdir():
            shutil.rmtree(each) if each.is_dir() else each.unlink()


def read_by_spark(pattern: str) -> object:
    """Reads the files that a reader finds which follows links, or returns an object of its own for endless links."""
    found: dict[str, bytes] = {}
    for place in sorted(glob.glob(pattern)):
        if not collected(Path(place), (), found):
            return object()
    return found


def collected(place: Path, above: tuple[str, ...], found: dict[str, bytes]) -> bool:
    real = os.path.realpath(place)
    if place.is_file():
        found[str(place)] = place.read_bytes()
    if real in above:
        return False
    return not place.is_dir() or all(collected(each, (*above, real), found) for each in place.iterdir())


class Folder:
    """A folder that is changed at random, with links inside, from outside and to the outside."""

    def __init__(self, place: Path, seed: int) -> None:
        self.place, self.random = place, random.Random(seed)
        self.folders = [place / name for name in ("in", "in/a", "in/b", "out", "out/c", "other")]
        for each in self.folders:
            each.mkdir()
        self.links = [place / name for name in ("in/l", "in/a/l", "in/m.csv", "out/l", "in/b/n.csv")]

    def step(self) -> None:
        self.random.choice((self.write, self.write, self.link, self.link, self.unlink, self.move))()

    def write(self) -> None:
        file = self.random.choice(self.folders) / self.random.choice(("x.csv", "y.csv", "z.json"))
        if not file.is_symlink():
            file.write_text("1" * self.random.randint(1, 4))
            # Copied files keep their times: the fingerprint must not depend on a clock that runs on.
            os.utime(file, ns=(0, self.random.randint(0, 3)))

    def link(self) -> None:
        targets = [*self.folders, *self.links, *(each / "x.csv" for each in self.folders)]
        switched(self.random.choice(self.links), self.random.choice(targets))

    def unlink(self) -> None:
        self.random.choice(self.links).unlink(missing_ok=True)

    def move(self) -> None:
        """Exchanges two folders behind the links."""
        one, other, between = self.place / "out", self.place / "other", self.place / "between"
        one.rename(between)
        other.rename(one)
        between.rename(other)
        for each in self.folders:
            each.mkdir(exist_ok=True)


PATTERNS = ("in", "in/*", "in/*/*.csv", "in/*.csv", "in/{a,l}/*", "in/l")


def stale(place: Path, seed: int, fingerprint_of: Callable[[str], str | None] = seen, steps: int = 40) -> list[str]:
    """Returns the patterns whose fingerprint stayed the same although a reader finds other files or contents."""
    folder, found = Folder(place, seed), []
    known: dict[tuple[str, str], object] = {}
    for _ in range(steps):
        folder.step()
        for each in PATTERNS:
            pattern = str(place / each)
            mark, content = fingerprint_of(pattern), read_by_spark(pattern)
            if mark is not None and known.setdefault((each, mark), content) != content:
                found.append(each)
    return found


@pytest.mark.parametrize("seed", range(20))
def test_files_with_the_same_fingerprint_are_the_same(tmp_path: Path, seed: int) -> None:
    assert stale(tmp_path, seed) == []


def test_a_listing_that_leaves_links_out_is_found(tmp_path: Path) -> None:
    def without_links(path: str) -> str | None:
        places = sorted(each for each in glob.glob(path) if not os.path.islink(each))
        statuses = [
            (each.path, each.size, each.modified_ms) for place in places for each in LocalStore(place).files_below("")
        ]
        return repr(statuses)

    (tmp_path / "a").mkdir()
    assert any(stale(tmp_path / "a", seed, without_links, 60) for seed in range(1))

"""`dbt seed` of one large file, and the part of it that dbt takes to read the file."""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from dbt_common.clients import agate_helper

from benchmarks.dbt_work import project
from benchmarks.dbt_work.measured import Compared, in_turn

ROWS = 100_000
_TEXTS = ("Zürich", "naïve", "O'Hara", 'say "hi"', "comma, text", "日本語", "plain", "🎉 party")


def measure(folder: Path, share: float, rounds: int) -> list[Compared]:
    """Times the reading, and the whole command, which re-creates the table each time."""
    rows = int(ROWS * share)
    made = project.make(folder / "seeds", {"seeds/readme.md": ""})
    file = made / "seeds" / "large.csv"
    with file.open("w", encoding="utf-8", newline="") as opened:
        csv.writer(opened).writerows(_lines(rows))

    def seed() -> None:
        written = project.run(made, "seed")["rows_inserted"]
        if written != rows:
            raise RuntimeError(f"{written} rows were written of {rows}")

    ways = {
        "dbt reads the file": lambda: agate_helper.from_csv(file, []),
        "dbt seed": seed,
    }
    return [in_turn(f"seed of {rows:,} rows", ways, rounds)]


def _lines(rows: int) -> Iterator[tuple[object, ...]]:
    chance, start = random.Random(7), datetime(2024, 1, 1)
    yield "id", "amount", "day", "at", "name", "note", "flag"
    for number in range(rows):
        text = chance.choice(_TEXTS)
        note = "" if number % 7 == 0 else f"a note {number} {text}"
        day, at = (start + timedelta(days=number % 900)).date(), start + timedelta(seconds=number * 37)
        amount = f"{chance.randint(-(10**6), 10**8) / 100:.2f}"
        yield number, amount, day, at, f"{text}{number % 1000}", note, ("true", "false", "")[number % 3]

"""Plays random stories, and shrinks those that differ from the oracle.

python -m tests.random_projects --histories 500 --seed 0
python -m tests.random_projects --seed 17 --histories 1 --shrink 600
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from pathlib import Path
from pprint import pprint

from tests.random_projects.generator import held_story, overlapping_story, story
from tests.random_projects.history import Player
from tests.random_projects.project import Story
from tests.random_projects.shrink import shrink


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--histories", type=int, default=10)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--steps", type=int, default=5)
    arguments.add_argument("--nodes", type=int, default=9, help="the most nodes of a project")
    arguments.add_argument("--shrink", type=float, default=300, help="for how many seconds a failure is shrunk")
    arguments.add_argument("--overlapping", action="store_true", help="run each command in two processes at once")
    arguments.add_argument("--held", action="store_true", help="publish runs after their tests, and correct held runs")
    arguments.add_argument("--accelerator", choices=["comet"], help="on a Spark that can be accelerated")
    chosen = arguments.parse_args()
    draw = overlapping_story if chosen.overlapping else held_story if chosen.held else story
    with tempfile.TemporaryDirectory() as project:
        failed = [
            seed
            for seed in range(chosen.seed, chosen.seed + chosen.histories)
            if not is_equal(Path(project), draw(seed, chosen.steps, chosen.nodes), chosen.shrink, chosen.accelerator)
        ]
    print(f"{chosen.histories} histories of {chosen.steps} runs, with a difference: {failed}")
    return 1 if failed else 0


def is_equal(project: Path, told: Story, seconds: float, accelerator: str | None = None) -> bool:
    """Plays a story and prints the result; shrinks the story for that long if it differs."""
    began = time.monotonic()
    difference = played(project, told, accelerator)
    print(f"seed {told.seed}: {difference or 'equal'}, {time.monotonic() - began:.0f} s", flush=True)
    if difference and seconds:
        small = shrink(told, lambda story: bool(played(project, story, accelerator)), seconds)
        pprint(small, width=160)
        print(played(project, small, accelerator), flush=True)
    return not difference


def played(project: Path, told: Story, accelerator: str | None = None) -> str:
    """Returns the differences from the oracle, or the error that ended the story; empty if all is equal."""
    with tempfile.TemporaryDirectory() as warehouse:
        try:
            return Player(project, Path(warehouse), told, accelerator=accelerator).difference()
        except Exception:
            return traceback.format_exc()


if __name__ == "__main__":
    sys.exit(main())

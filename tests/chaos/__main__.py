"""Kills real dbt processes at seeded moments and continues them, until every round is complete.

python -m tests.chaos --kills 300 --seed 1 --jobs 2
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.chaos.chaos import Chaos, stories
from tests.chaos.figures import Figures
from tests.chaos.plan import ROUNDS
from tests.chaos.story import Told
from tests.cloud.servers import ObjectServer, running_s3
from tests.connect_server import running_for_processes


def _chosen(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=300, help="how many processes to kill")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the number of the first kill")
    parser.add_argument("--kill", type=int, help="the story of that one kill alone, up to its round")
    parser.add_argument("--seed", type=int, default=1, help="of the moments and the ways")
    parser.add_argument("--jobs", type=int, default=1, help="stories side by side")
    parser.add_argument("--figures", type=Path, help="a JSON file that this call's figures are added to")
    parser.add_argument("--server", action="store_true", help="let all runs share one Spark Connect server")
    parser.add_argument("--cloud", choices=("s3",), help="put the warehouses into an object store")
    parser.add_argument("--publish", default="at_once", help="when the builds become visible: the profile's `publish`")
    parser.add_argument("--folder", type=Path, help="where warehouses are made; else a temporary folder")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Returns 1 if a round failed, else 0."""
    chosen = _chosen(arguments)
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="silt-chaos-"))
    with contextlib.ExitStack() as servers:
        remote = servers.enter_context(running_for_processes(folder / "server")) if chosen.server else None
        cloud = servers.enter_context(running_s3(_made(folder / "objects"))) if chosen.cloud else None
        figures = Figures.of(_told(chosen, _chaos(chosen, folder, remote, cloud)))
    print(figures)
    print(figures.json())
    return 1 if figures.rounds_gone_wrong else 0


def _chaos(chosen: argparse.Namespace, folder: Path, remote: str | None, cloud: ObjectServer | None) -> Chaos:
    return Chaos(folder, chosen.seed, remote, chosen.figures, cloud, publish=chosen.publish)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def _told(chosen: argparse.Namespace, chaos: Chaos) -> list[Told]:
    if chosen.kill is None:
        wanted = stories(chosen.first, chosen.kills, chaos.per_round)
    else:
        story, round_ = divmod(chosen.kill // chaos.per_round, ROUNDS)
        wanted = {story: (round_ + 1) * chaos.per_round}
    with ThreadPoolExecutor(chosen.jobs) as pool:
        return [each for rounds_ in pool.map(chaos.story, wanted.keys(), wanted.values()) for each in rounds_]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

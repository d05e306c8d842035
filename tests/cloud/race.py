"""Runs processes that write to one table in an object store at the same time, and kills some of them.

python -m tests.cloud.race s3 --writers 4 --commits 100
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.cloud.servers import running_azure, running_s3
from tests.simulation.processes import keep_in, run_processes

_SERVERS = {"s3": running_s3, "azure": running_azure}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("server", choices=sorted(_SERVERS))
    arguments.add_argument("--writers", type=int, default=4)
    arguments.add_argument("--commits", type=int, default=100)
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as served, _SERVERS[chosen.server](Path(served)) as server:  # type: ignore[operator]
        for name, seed in (("processes", None), ("killed processes", 1)):
            with tempfile.TemporaryDirectory() as folder:
                keep_in(Path(folder), server.store().root, server.options)
                outcome = run_processes(Path(folder), chosen.writers, chosen.commits, seed)
                print(f"{chosen.server}, {chosen.writers} {name}: {outcome}", flush=True)


if __name__ == "__main__":
    main()

"""Checks histories of concurrent transactions until TRANSACTIONS are checked, and prints their anomalies.

TRANSACTIONS=10000 python -m tests.histories                  processes that are killed, over a folder
TRANSACTIONS=10000 python -m tests.histories --on s3          over an S3, or `azure`
TRANSACTIONS=1000 python -m tests.histories --door sql        SQL from threads of one Spark, over a folder
TRANSACTIONS=10000 python -m tests.histories --door interleaved
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from dbt.adapters.silt.session.spark import SessionSettings, open_session
from tests.cloud.servers import running_azure, running_s3
from tests.histories.checker import check
from tests.histories.history import History
from tests.histories.interleaved import Run, workload
from tests.histories.processes import Place, history
from tests.histories.sql_clients import history_of_threads, sql_workload

TRANSACTIONS: Final = "TRANSACTIONS"
_SERVERS: Final = {"s3": running_s3, "azure": running_azure}
_LENGTHS: Final = {"interleaved": 15, "processes": 250, "sql": 60}
"""The number of transactions that each client executes in one history."""
_SPARK: Final = SessionSettings("local[2]", spark_conf={"spark.sql.shuffle.partitions": "1"})

Make = Callable[[int, Path], History]
"""Records the history of a seed, in an empty folder."""


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--door", choices=sorted(_LENGTHS), default="processes")
    arguments.add_argument("--on", choices=["folder", *_SERVERS], default="folder")
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--clients", type=int, default=4)
    chosen = arguments.parse_args()
    with maker(chosen.door, chosen.on, chosen.clients) as make:
        return report(make, chosen.seed, int(os.environ.get(TRANSACTIONS, "1000")))


@contextlib.contextmanager
def maker(door: str, on: str, clients: int) -> Iterator[Make]:
    """Provides the function that records histories, with the server that it needs."""
    length = _LENGTHS[door]
    with contextlib.ExitStack() as stack:
        if door == "interleaved":
            yield lambda seed, _: Run(workload(seed, clients, length), seed % 2 == 0, twins=1 + seed % 2).history()
        elif door == "sql":
            spark = open_session(_SPARK)
            yield lambda seed, folder: history_of_threads(spark, folder, sql_workload(seed, clients, length))
        elif on == "folder":
            yield lambda seed, folder: history(Place(folder, seed, clients, length), kills=clients)
        else:
            server = stack.enter_context(_SERVERS[on](Path(stack.enter_context(tempfile.TemporaryDirectory()))))  # type: ignore[operator]
            yield lambda seed, folder: history(
                Place(folder, seed, clients, length, server.store().root, server.options), kills=clients
            )


def report(make: Make, seed: int, transactions: int) -> int:
    """Checks histories until they have that many transactions in total; returns 1 after the first with an anomaly."""
    began, answers = time.monotonic(), Counter[str]()
    while answers.total() < transactions:
        with tempfile.TemporaryDirectory() as folder:
            made = make(seed, Path(folder))
        answers.update(each.answer.value for each in made.transactions)
        if anomalies := check(made):
            print(f"seed {seed}:", *anomalies, sep="\n", flush=True)
            return 1
        print(f"seed {seed}: {dict(answers)}, no anomaly, {time.monotonic() - began:.0f} s", flush=True)
        seed += 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Kills and stops executors while statements run, and compares the tables with those of undisturbed statements.

Each round runs one statement on two tables that are equal: first on one table undisturbed, then on the other while
executors are killed (SIGKILL) or stopped for seconds (SIGSTOP), with speculation on. Afterwards both have the same
rows and, except for times and files, the same metrics. Spark's event log shows which stages and tasks were repeated.

python -m tests.clusters.faults --rounds 100 --seed 1
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.warehouse import Warehouse
from tests.clusters import standalone
from tests.clusters.disturbance import Disturbance, Fault
from tests.clusters.event_log import EventLog, Repeated
from tests.clusters.standalone import Cluster

_ROWS: Final = 60_000
_SETTINGS: Final[Mapping[str, str]] = {
    **standalone.SMALL,
    "spark.sql.shuffle.partitions": "6",
    # As many tasks run as are planned, so that a fault has something to hit.
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.files.maxPartitionBytes": "200k",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.task.maxFailures": "10",
    "spark.stage.maxConsecutiveAttempts": "10",
    # A lost executor is noticed through its connection; a stopped executor keeps its tasks.
    "spark.network.timeout": "60s",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    "spark.sql.variant.writeShredding.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Publishes the number of completed tasks immediately.
    "spark.ui.liveUpdate.period": "0",
}
_TABLE = """
    create table {table} (id bigint, p int, name string, amount decimal(12, 2), valid_to timestamp)
    {partitioned} tblproperties ({properties})
"""
_FILL = """
    insert into {table} select /*+ repartition({files}) */ id, cast(id % 3 as int), concat('n', id), id / 4, null
    from range({rows})
"""
_WORK: Final = "length(aggregate(sequence(1, {times}), cast(id as string), (text, _) -> sha2(text, 256)))"
"""64, after some work: a fault cannot hit a task that ends in a moment, nor is it run speculatively."""
_HASHES_PER_TASK: Final = 200_000
_SOURCE_TASKS, _FILES = 5, 6
_SOURCE = """
    (select /*+ repartition({tasks}) */ id * 7 % {rows} + {shift} + {work} - 64 as id, cast(id % 4 as int) as p,
        concat('m', id) as name, cast({round} as decimal(12, 2)) as amount, id % 5 as what from range({some}))
"""
STATEMENTS: Final[Mapping[str, str]] = {
    "merge": """merge into {table} t using {source} s on t.id = s.id when matched and s.what = 0 then delete
        when matched then update set name = s.name, amount = s.amount
        when not matched then insert (id, p, name, amount) values (s.id, s.p, s.name, s.amount)""",
    "merge that only deletes": """merge into {table} t using {source} s on t.id = s.id and s.what < 2
        when matched then delete""",
    "merge that only inserts": """merge into {table} t using {source} s on t.id = s.id
        when not matched then insert (id, p, name, amount) values (s.id, s.p, s.name, s.amount)""",
    "snapshot": """merge into {table} t using {source} s on t.id = s.id and t.valid_to is null
        when matched and s.what < 3 then update set valid_to = timestamp'2026-01-01 00:00:00'
        when not matched then insert (id, p, name, amount) values (s.id, s.p, s.name, s.amount)""",
    "insert": "insert into {table} (id, p, name, amount) select id, p, name, amount from {source} where what > 1",
    "replace": """insert into {table} (id, p, name, amount) replace using (id)
        select distinct id, p, name, amount from {source}""",
    "update": "update {table} set amount = amount + {round}, name = concat(name, '!') "
    "where id % 11 = {round} % 11 and {table_work} = 64",
    "delete": "delete from {table} where id % 13 = {round} % 13 and {table_work} = 64",
    "optimize": "optimize {table}",
}
_KINDS: Final[tuple[dict[str, str], ...]] = (
    {},
    {"partitioned": "partitioned by (p)"},
    {"marked": "true"},
    {"marked": "true", "recorded": "true"},
)
_UNEQUAL_METRICS: Final = ("Ms", "Bytes", "File", "Vectors")


def _work(rows: int) -> str:
    """Returns an expression that keeps a task of so many rows busy for about a second."""
    return _WORK.format(times=max(_HASHES_PER_TASK // rows, 1))


@dataclass(frozen=True)
class Round:
    """One round's result.

    Attributes:
        failed: the error of the disturbed statement before it was repeated; None if it did not fail.
        wrong: the differences of the tables.
    """

    number: int
    statement: str
    faults: Sequence[Fault]
    hits: int
    repeated: Repeated
    seconds: float
    failed: str | None = None
    wrong: Sequence[str] = ()


@dataclass
class Trial:
    """Two warehouses on one cluster."""

    spark: SparkSession
    cluster: Cluster
    folder: Path
    seed: int
    log: EventLog
    disturbed: Warehouse = field(init=False)
    undisturbed: Warehouse = field(init=False)

    def __post_init__(self) -> None:
        self.disturbed = Warehouse(self.spark.newSession(), str(self.folder / "disturbed"))
        self.undisturbed = Warehouse(self.spark.newSession(), str(self.folder / "undisturbed"))

    def make(self, name: str, kind: Mapping[str, str]) -> None:
        properties = {
            "delta.enableDeletionVectors": kind.get("marked", "false"),
            "delta.enableChangeDataFeed": kind.get("recorded", "false"),
        }
        values = {
            "table": name,
            "rows": _ROWS,
            "files": _FILES,
            "partitioned": kind.get("partitioned", ""),
            "properties": ", ".join(f"'{key}' = '{value}'" for key, value in properties.items()),
        }
        for each in (self.disturbed, self.undisturbed):
            each.sql(_TABLE.format(**values))
            each.sql(_FILL.format(**values))

    def run(self, number: int) -> Round:
        """Runs the round of that number in tables of its own."""
        chance = random.Random(f"{self.seed}-{number}")
        name, table = chance.choice(sorted(STATEMENTS)), f"t{number}"
        some = chance.choice((400, 20_000))
        values = {
            "rows": _ROWS,
            "round": number,
            "some": some,
            "shift": chance.choice((0, _ROWS // 2)),
            "tasks": _SOURCE_TASKS,
            "work": _work(some // _SOURCE_TASKS),
            "table_work": _work(_ROWS // _FILES),
        }
        text = STATEMENTS[name].format(table=table, source=_SOURCE.format(**values), **values)
        self.make(table, chance.choice(_KINDS))
        self.log.repeated()
        self.undisturbed.sql(text, (f"round/{number}", 1))
        tasks = self.log.repeated().ended
        faults = [
            Fault(chance.randrange(max(tasks, 1)), None if chance.random() < 0.6 else chance.uniform(3.0, 9.0))
            for _ in range(chance.choice((1, 2, 3)))
        ]
        return self._disturbed(number, f"{name} of {values['some']} rows", text, faults)

    def _disturbed(self, number: int, name: str, text: str, faults: Sequence[Fault]) -> Round:
        table, began, failed = f"t{number}", time.monotonic(), None
        with Disturbance(self.spark, self.cluster, faults) as hits:
            try:
                self.disturbed.sql(text, (f"round/{number}", 1))
            except SiltError as error:
                failed = f"{error.code}: {error}"
        seconds, repeated = time.monotonic() - began, self.log.repeated()
        if failed is not None:
            self.disturbed.sql(text, (f"round/{number}", 1))
        wrong = tuple(differences(self.folder / "disturbed/main" / table, self.folder / "undisturbed/main" / table))
        return Round(number, name, faults, len(hits), repeated, seconds, failed, wrong)


def differences(disturbed: Path, undisturbed: Path) -> Iterator[str]:
    """Returns the differences of two tables in their rows, or in the row metrics of their last commits."""
    found, expected = (_rows(folder) for folder in (disturbed, undisturbed))
    if found != expected:
        lost, more = expected - found, found - expected
        yield f"{lost.total()} rows lost ({list(lost)[:2]}), {more.total()} rows too many ({list(more)[:2]})"
    of_found, of_expected = (_metrics(folder) for folder in (disturbed, undisturbed))
    if of_found != of_expected:
        yield f"metrics {of_found} instead of {of_expected}"


def _rows(folder: Path) -> collections.Counter[tuple[object, ...]]:
    table = pa.table(QueryBuilder().register("t", DeltaTable(str(folder))).execute("select * from t").read_all())
    return collections.Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _metrics(folder: Path) -> dict[str, str]:
    (newest,) = DeltaTable(str(folder)).history(1)
    metrics = newest.get("operationMetrics", {})
    return {name: value for name, value in metrics.items() if not any(part in name for part in _UNEQUAL_METRICS)}


@contextlib.contextmanager
def trial(folder: Path, seed: int) -> Iterator[Trial]:
    """Yields a cluster of two workers, and this process's session on it."""
    events = folder / "events"
    events.mkdir(parents=True)
    with standalone.running(folder / "cluster") as cluster:
        settings = {**_SETTINGS, "spark.eventLog.enabled": "true", "spark.eventLog.dir": events.as_uri()}
        builder = SparkSession.builder.master(cluster.master).config("spark.eventLog.compress", "false")
        for name, value in settings.items():
            builder = builder.config(name, value)
        spark = builder.config("spark.sql.warehouse.dir", str(folder / "spark-warehouse")).getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        try:
            yield Trial(spark, cluster, folder, seed, EventLog(events))
        finally:
            spark.stop()


def shown(rounds: Sequence[Round]) -> str:
    """Returns the figures of all rounds."""
    kinds = collections.Counter(each.statement.split(" of ")[0] for each in rounds)
    faults = [fault for each in rounds for fault in each.faults[: each.hits]]
    lines = {
        "rounds": len(rounds),
        "statements": ", ".join(f"{name} {count}" for name, count in sorted(kinds.items())),
        "executors killed": sum(fault.seconds is None for fault in faults),
        "executors stopped for seconds": sum(fault.seconds is not None for fault in faults),
        "rounds with a stage that ran again": sum(each.repeated.stages > 0 for each in rounds),
        "rounds with a task that ran again": sum(each.repeated.tasks > 0 for each in rounds),
        "rounds with a speculative task": sum(each.repeated.speculative > 0 for each in rounds),
        "rounds with none of them": sum(not each.repeated for each in rounds),
        "statements that failed, and were run again": sum(each.failed is not None for each in rounds),
        "rounds gone wrong": sum(bool(each.wrong) for each in rounds),
    }
    return "\n".join(f"{name}: {value}" for name, value in lines.items())


def main(arguments: Sequence[str]) -> int:
    """Returns 1 if a round failed, else 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.clusters.faults", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--first", type=int, default=1, help="the number of the first round")
    parser.add_argument("--seed", type=int, default=1, help="of the statements and the faults")
    chosen = parser.parse_args(arguments)
    rounds = []
    with tempfile.TemporaryDirectory() as folder, trial(Path(folder), chosen.seed) as running:
        for number in range(chosen.first, chosen.first + chosen.rounds):
            rounds.append(running.run(number))
            _say(rounds[-1])
    print(shown(rounds))
    return 1 if any(each.wrong for each in rounds) else 0


def _say(done: Round) -> None:
    faults = ", ".join(f"{'kill' if f.seconds is None else 'stop'} after {f.after}" for f in done.faults)
    again = f"{done.repeated.stages} stages, {done.repeated.tasks} tasks, {done.repeated.speculative} speculative"
    failed = f"; failed: {done.failed}" if done.failed else ""
    wrong = f"; WRONG: {'; '.join(done.wrong)}" if done.wrong else ""
    said = f"{done.number}: {done.statement}, {done.seconds:.1f} s; {faults}: {done.hits} hit; again {again}"
    print(said + failed + wrong, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

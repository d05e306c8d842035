"""Times queries and statements on Spark alone and with an accelerator: `python -m benchmarks.accelerator`.

Each of the two runs in a process of its own, with the same memory in total. The rows of each query and of each table
must be equal. It needs a Spark that can be accelerated; the jar is found as for a profile with `accelerator: comet`.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from dbt.adapters.silt.engine.arrow import read
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.warehouse import Warehouse
from dbt.adapters.silt.session.accelerator import Accelerator, settings
from dbt.adapters.silt.session.spark import SessionSettings, open_session, stop_spark

ROWS: Final = 10_000_000
REPETITIONS: Final = 3
MASTER: Final = "local[*]"
ALONE, ACCELERATED = "Spark", "with Comet"

CREATE: Final = (
    "create or replace table orders tblproperties (delta.enableDeletionVectors = true) as select id, "
    "id * 7919 % 100000 as customer, cast(id % 99991 as double) / 7 as amount, cast(id % 977 as decimal(12, 2)) as "
    "price, concat('note ', id) as note from range(0, {rows}, 1, 16)"
)
QUERIES: Final = {
    "totals of 100,000 keys": "select customer, count(*) as orders, sum(price) as total, max(amount) as most "
    "from orders group by customer",
    "count(distinct) of all texts": "select count(distinct note) as notes from orders",
    "join of the table with itself, totals": "select a.customer % 100 as part, count(*) as pairs, sum(b.price) as sum "
    "from orders a join orders b on a.id = b.id group by 1",
    "row_number by key": "select count(*) as firsts, sum(id) as ids from "
    "(select id, row_number() over (partition by customer order by id) as n from orders) where n <= 3",
}
MERGE: Final = (
    "merge into orders t using (select id * {step} + {turn} as id, cast(-1 as double) as amount "
    "from range({count})) s on t.id = s.id when matched then update set amount = s.amount"
)
DELETE: Final = "delete from orders where id % 1000 = {turn}"
STATEMENTS: Final = {"merge of 1 % scattered rows": MERGE, "delete of 0.1 % scattered rows": DELETE}


def measure(name: str, folder: Path, rows: int) -> dict[str, Any]:
    """Times everything on one of the two; leaves the rows of queries and of the table in the folder."""
    conf = settings(Accelerator("comet"), {}, MASTER, ()) if name == ACCELERATED else {}
    spark = open_session(SessionSettings(master=MASTER, spark_conf=conf))
    house = Warehouse(spark, str(folder / "house"))
    times = {"create the table": [_seconds(house, CREATE.format(rows=rows)) for _ in range(REPETITIONS + 1)][1:]}
    orders = house.catalog.table(RelationName("silt", "main", "orders"))
    files = [str(Path(orders.store.root, unquote(each))) for each in orders.snapshot().files["path"].to_pylist()]
    for number, (title, query) in enumerate(QUERIES.items()):
        runs = [_query(house, query) for _ in range(REPETITIONS + 1)]  # the first warms the session up
        times[title] = [seconds for seconds, _ in runs[1:]]
        pq.write_table(_sorted(runs[-1][1]), folder / f"{number}.parquet")
    for title, statement in STATEMENTS.items():
        texts = [statement.format(turn=turn, step=100, count=rows // 100) for turn in range(REPETITIONS + 1)]
        times[title] = [_seconds(house, text) for text in texts][1:]
    version = str(spark.conf.get("spark.comet.version", ""))
    stop_spark()
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    medians = {title: statistics.median(each) for title, each in times.items()}
    return {"version": version, "peak": peak, "files": files, "times": medians}


def measure_duckdb(files: Sequence[str]) -> dict[str, float]:
    """Returns the medians of the queries in DuckDB, on the files of Spark's table."""
    with duckdb.connect() as connection:
        connection.execute(f"create view orders as select * from read_parquet({list(files)!r})")
        runs = {name: [_duckdb(connection, query) for _ in range(REPETITIONS + 1)] for name, query in QUERIES.items()}
    return {name: statistics.median(each[1:]) for name, each in runs.items()}


def _duckdb(connection: duckdb.DuckDBPyConnection, query: str) -> float:
    began = time.perf_counter()
    connection.execute(query).fetchall()
    return time.perf_counter() - began


def _seconds(house: Warehouse, statement: str) -> float:
    began = time.perf_counter()
    house.sql(statement)
    return time.perf_counter() - began


def _query(house: Warehouse, query: str) -> tuple[float, pa.Table]:
    began = time.perf_counter()
    rows = house.sql(query).toArrow()
    return time.perf_counter() - began, rows


def _sorted(rows: pa.Table) -> pa.Table:
    return rows.sort_by([(name, "ascending") for name in rows.column_names])


def check_equal(one: Path, other: Path) -> None:
    """Raises RuntimeError if the rows of a query or of the table differ."""
    for number, title in enumerate(QUERIES):
        if not pq.read_table(one / f"{number}.parquet").equals(pq.read_table(other / f"{number}.parquet")):
            raise RuntimeError(f"the rows differ: {title}")
    if not _table(one).equals(_table(other)):
        raise RuntimeError("the rows of the table differ")


def _table(folder: Path) -> pa.Table:
    return _sorted(read.read(str(folder / "house" / "main" / "orders")))


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the medians, and the ratio of each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accelerator", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--part", nargs=2, metavar=("NAME", "FOLDER"), help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.part:
        print(json.dumps(measure(given.part[0], Path(given.part[1]), given.rows)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        found = {name: _measured(name, Path(folder, name), given.rows) for name in (ALONE, ACCELERATED)}
        check_equal(Path(folder, ALONE), Path(folder, ACCELERATED))
        beside = measure_duckdb(found[ALONE]["files"])
    _show(found, beside, given.rows)
    return 0


def _measured(name: str, folder: Path, rows: int) -> Mapping[str, Any]:
    folder.mkdir()
    command = [sys.executable, "-m", "benchmarks.accelerator", "--rows", str(rows), "--part", name, str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: Mapping[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _show(found: Mapping[str, Mapping[str, Any]], beside: Mapping[str, float], rows: int) -> None:
    alone, accelerated = found[ALONE], found[ACCELERATED]
    title = f"{rows:,} rows, median seconds of {REPETITIONS}, Comet {accelerated['version']}; all rows are equal"
    table = Table("", ALONE, ACCELERATED, "times", "DuckDB on the same files", title=title)
    for name, seconds in alone["times"].items():
        other = accelerated["times"][name]
        duck = f"{beside[name]:.2f}" if name in beside else ""
        table.add_row(name, f"{seconds:.2f}", f"{other:.2f}", f"{other / seconds:.2f}", duck)
    table.add_row("most memory of Java, MiB", f"{alone['peak']}", f"{accelerated['peak']}")
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())

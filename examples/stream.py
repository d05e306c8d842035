"""A stream that writes two tables is killed between the two writes, and neither loses nor doubles a row.

    python examples/stream.py                 runs the whole example in a temporary folder
    python examples/stream.py --without-txn   the same without transaction identifiers: ten rows are doubled

Ten files of ten orders each land in a folder. A stream reads one file per batch and makes two writes: it appends the
orders to `orders`, and merges their counts and amounts into `customers`. The first process is killed, by SIGKILL, in
batch 5 (the first batch is 0), between the two writes. The second process continues from the checkpoint: Spark
passes it batch 5 again.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.silt.engine import Warehouse

APP_ID = "orders-stream"
BATCHES, ROWS_OF_A_BATCH = 10, 10
ORDERS = "order_id bigint, customer bigint, amount decimal(12, 2)"

ADD_UP = """
    merge into customers
    using (select customer, count(*) as orders, sum(amount) as amount from batch group by customer) as new
    on customers.customer = new.customer
    when matched then update set orders = customers.orders + new.orders, amount = customers.amount + new.amount
    when not matched then insert *
"""


def writes(folder: Path, with_txn: bool, crash_in: int | None) -> Callable[[DataFrame, int], None]:
    """Returns the function that handles a batch: two writes, each of which takes place once."""

    def write(batch: DataFrame, batch_id: int) -> None:
        txn = (APP_ID, batch_id) if with_txn else None
        # Each micro-batch has its own session. Opening the warehouse in it takes a few milliseconds.
        warehouse = Warehouse(batch.sparkSession, str(folder / "warehouse"))
        warehouse.write(batch, "orders", txn=txn)
        if batch_id == crash_in:
            os.killpg(os.getpgrp(), signal.SIGKILL)  # kills this process and its JVM without any clean-up
        batch.createOrReplaceTempView("batch")
        warehouse.sql(ADD_UP, txn=txn)

    return write


def run(folder: Path, with_txn: bool, crash_in: int | None) -> None:
    """Runs the job once: it processes all landed files that it has not processed yet, and ends."""
    logging.basicConfig(format="  %(message)s")
    logging.getLogger("dbt.adapters.silt").setLevel(logging.INFO)
    spark = session()
    warehouse = Warehouse(spark, str(folder / "warehouse"))
    warehouse.sql(f"create table if not exists orders ({ORDERS})")
    warehouse.sql("create table if not exists customers (customer bigint, orders bigint, amount decimal(22, 2))")
    print(f"  at the start: {found(warehouse)}", flush=True)
    (
        spark.readStream.schema(ORDERS)
        .option("maxFilesPerTrigger", 1)
        .json(str(folder / "landing"))
        .writeStream.foreachBatch(writes(folder, with_txn, crash_in))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
        .awaitTermination()
    )
    print(f"  at the end: {found(warehouse)}", flush=True)


def found(warehouse: Warehouse) -> str:
    """Describes the number of orders, and the sum of the customers' counts."""
    held = warehouse.table("orders").count()
    counted = warehouse.sql("select coalesce(sum(orders), 0) from customers").collect()[0][0]
    return f"orders has {held} rows, customers counts {counted}"


def session() -> SparkSession:
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def land(folder: Path) -> None:
    """Writes ten files of ten orders each."""
    (folder / "landing").mkdir(parents=True)
    for file in range(BATCHES):
        ids = range(file * ROWS_OF_A_BATCH, (file + 1) * ROWS_OF_A_BATCH)
        orders = [{"order_id": id_, "customer": id_ % 3, "amount": id_ + 0.5} for id_ in ids]
        (folder / "landing" / f"{file:02}.json").write_text("\n".join(map(json.dumps, orders)))


def run_twice(folder: Path, with_txn: bool) -> int:
    """Lands the orders and runs the job in two processes; returns the exit code of the second process."""
    land(folder)
    code = 0
    for title, crash in (("The first process", ("--crash-in", "5")), ("The second process", ())):
        print(f"{title}:", flush=True)
        command = [sys.executable, __file__, "run", str(folder), *crash, *(() if with_txn else ("--without-txn",))]
        code = subprocess.run(command, start_new_session=True, check=False).returncode
        if code == -signal.SIGKILL:
            print("  killed in batch 5, between its two writes", flush=True)
    return code


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "what", nargs="?", choices=("all", "run"), default="all", help="the whole example, or one run of the job"
    )
    parser.add_argument("folder", nargs="?", type=Path, help="the folder of landing, warehouse and checkpoint")
    parser.add_argument("--without-txn", action="store_true")
    parser.add_argument("--crash-in", type=int, metavar="BATCH")
    given = parser.parse_args()
    if given.what == "run":
        run(given.folder, not given.without_txn, given.crash_in)
        return 0
    if given.folder is not None:
        return run_twice(given.folder, not given.without_txn)
    with tempfile.TemporaryDirectory() as folder:
        return run_twice(Path(folder), not given.without_txn)


if __name__ == "__main__":
    sys.exit(main())

"""Reads tables with delta-spark, and appends to them, in a separate process: its jars fit one line of Spark's
versions.

python tests/interop/delta_spark_process.py JARS FOLDER, where JARS is a folder of jars, or their coordinates in Maven,
and FOLDER holds `tables.json`: name -> the table's path. It writes each table's rows to FOLDER as `<name>.rows`, and
the rows of its change data feed, if enabled, as `<name>.changes`; then it appends the table's rows to it again, and
writes all rows as `<name>.added`. Each file is an Arrow stream; an error is a text file instead, with `.error` after
the name. If FOLDER holds `statements.json`, a list of SQL, it runs these instead, and writes their rows to
`answers.json`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

_FEED = "delta.enableChangeDataFeed"
_DOWNLOADED = Path(__file__).resolve().parents[2] / ".lanes" / "ivy"


def main(jars: str, folder: Path) -> None:
    spark = _session(jars, folder)
    if (folder / "statements.json").exists():
        _answer(spark, folder)
        return
    for name, path in json.loads((folder / "tables.json").read_text()).items():
        reader = spark.read.format("delta")
        _keep(folder / f"{name}.rows", lambda reader=reader, path=path: reader.load(path))  # type: ignore[misc]
        detail = spark.sql(f"describe detail delta.`{path}`").collect()[0]
        if detail.properties.get(_FEED) == "true":
            feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
            _keep(folder / f"{name}.changes", lambda feed=feed, path=path: feed.load(path))  # type: ignore[misc]
        _keep(folder / f"{name}.added", lambda path=path: _added(spark, path))  # type: ignore[misc]
    spark.stop()


def _answer(spark: SparkSession, folder: Path) -> None:
    statements = json.loads((folder / "statements.json").read_text())
    answers = [[json.loads(str(row)) for row in spark.sql(each).toJSON().collect()] for each in statements]
    (folder / "answers.json").write_text(json.dumps(answers))
    spark.stop()


def _session(jars: str, folder: Path) -> SparkSession:
    settings = {
        "spark.driver.memory": "2g",
        **_of_delta_spark(jars),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _of_delta_spark(jars: str) -> dict[str, str]:
    if Path(jars).is_dir():
        return {"spark.jars": ",".join(sorted(map(str, Path(jars).glob("*.jar"))))}
    return {"spark.jars.packages": jars, "spark.jars.ivy": str(_DOWNLOADED)}


def _keep(file: Path, read: Callable[[], DataFrame]) -> None:
    try:
        rows = read().toArrow()
    except Exception as error:  # of any class: its message is the result
        file.with_name(file.name + ".error").write_text(f"{type(error).__name__}: {error}")
        return
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)


def _added(spark: SparkSession, path: str) -> DataFrame:
    spark.read.format("delta").load(path).write.format("delta").mode("append").save(path)
    return spark.read.format("delta").load(path)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

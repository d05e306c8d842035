"""Runs statements with delta-spark: `delta_spark_process.py JARS FOLDER`, where FOLDER has `statements.json`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession


def main(jars: str, folder: Path) -> None:
    settings = {
        "spark.jars.packages": jars,
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.databricks.delta.optimize.maxFileSize": str(1 << 20),
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    for statement in json.loads((folder / "statements.json").read_text()):
        spark.sql(statement).collect()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

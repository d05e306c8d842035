"""Writes a class-data archive of Spark's classes, with which Java starts Spark in two thirds of the time.

The archive belongs to a virtual environment, and is written on request only: `python -m
dbt.adapters.silt.session.class_archive` (`make setup` does it). Java ignores one that does not fit it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from dbt.adapters.silt.session.java import Java, archive_path, find_java
from dbt.adapters.silt.session.spark import SessionSettings, open_session, stop_spark


def write_archive(path: Path, java: Java) -> bool:
    """Starts Spark, runs typical queries, and writes the classes that it loaded to an archive.

    Returns:
        Whether Java made an archive that it can start from; if not, none is kept.

    Raises:
        SparkUnavailableError: Spark did not start.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        unfinished = Path(folder) / path.name
        options = f"-XX:ArchiveClassesAtExit={unfinished} -Xlog:cds=off -Xlog:cds+dynamic=off"
        settings = SessionSettings(master="local[2]", spark_conf={"spark.driver.extraJavaOptions": options})
        _run_queries(open_session(settings), folder)
        stop_spark()
        check = [java.path, f"-XX:SharedArchiveFile={unfinished}", "-version"]
        if not unfinished.exists() or subprocess.run(check, capture_output=True, check=False).returncode != 0:
            return False
        os.replace(unfinished, path)
        return True


def _run_queries(spark: SparkSession, folder: str) -> None:
    """Does what the first models of a project do: write and read Parquet, join, aggregate, sort."""
    keys = spark.range(1000).selectExpr(
        "id", "id % 7 as grp", "cast(id as string) as name", "cast(id as decimal(12, 2)) as amount", "now() as at"
    )
    keys.write.partitionBy("grp").parquet(f"{folder}/keys")
    keys = spark.read.parquet(f"{folder}/keys")
    keys.createOrReplaceTempView("keys")
    joined = spark.sql(
        """
        with named as (select id, name, row_number() over (partition by grp order by at desc) as nth from keys)
        select k.grp, count(*) as n, sum(k.amount) as amount, max(n.name) as name, min(k.at) as at
        from keys k full outer join named n on k.id = n.id and n.nth > 1
        where k.id in (select id + 1 from keys) or n.id is null
        group by k.grp order by n
        """
    )
    joined.write.parquet(f"{folder}/joined")
    joined.toArrow()


def main() -> int:
    """Writes the archive for this environment's Spark and Java if it is not there yet."""
    java = find_java()
    path = archive_path(java)
    if path is None:
        print("No class-data archive is written outside of a virtual environment.", file=sys.stderr)
    elif not path.is_file() and not write_archive(path, java):
        print("This Java writes no class-data archive; Spark starts without.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())

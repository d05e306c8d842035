"""The Hadoop defaults that a local Spark keeps."""

from __future__ import annotations

from pyspark.sql import SparkSession

from dbt.adapters.silt.session import local_spark


def test_defaults_of_mapreduce_and_yarn_are_removed_and_all_others_kept(spark: SparkSession) -> None:
    found = spark.sparkContext._jsc.hadoopConfiguration()
    assert found.get("yarn.resourcemanager.hostname") is None
    assert found.get("mapreduce.job.maps") is None
    assert found.get("fs.s3a.connection.maximum") is not None
    assert found.get("io.serializations") is not None


def test_settings_of_the_user_are_kept(spark: SparkSession) -> None:
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    configuration.set("mapreduce.job.maps", "7")
    configuration.set("yarn.resourcemanager.hostname", "elsewhere")
    local_spark.remove_hadoop_defaults(spark.sparkContext)
    try:
        assert configuration.get("mapreduce.job.maps") == "7"
        assert configuration.get("yarn.resourcemanager.hostname") == "elsewhere"
    finally:
        configuration.unset("mapreduce.job.maps")
        configuration.unset("yarn.resourcemanager.hostname")


def test_a_spark_without_the_removed_defaults_reads_and_writes(spark: SparkSession, tmp_path: object) -> None:
    folder = f"{tmp_path}/rows"
    spark.range(3).write.csv(folder)
    assert sorted(row[0] for row in spark.read.csv(folder).collect()) == ["0", "1", "2"]
    spark.sparkContext.parallelize([("a", 1)]).saveAsSequenceFile(f"{tmp_path}/pairs")
    assert spark.sparkContext.sequenceFile(f"{tmp_path}/pairs").collect() == [("a", 1)]

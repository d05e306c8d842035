"""The benchmark of changed keys follows changes of a small table, and checks that the tables are equal."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.changed_keys.__main__ import PLACES, Shop, measured


@pytest.mark.long
def test_the_totals_follow_each_kind_of_change(spark: SparkSession, tmp_path: Path) -> None:
    shop = Shop(spark.newSession(), tmp_path / "house", 4_000)
    for turn, place in enumerate(PLACES):
        assert all(each > 0 for each in measured(shop, place, turn))


def test_a_missing_row_is_found(spark: SparkSession, tmp_path: Path) -> None:
    shop = Shop(spark.newSession(), tmp_path / "house", 1_000)
    shop.compute_again()
    shop.house.sql("delete from totals where customer = 7")
    with pytest.raises(RuntimeError, match="missing in totals"):
        shop.check()
    with pytest.raises(RuntimeError, match="all rows were replaced"):
        shop.follow()

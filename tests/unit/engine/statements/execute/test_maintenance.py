"""OPTIMIZE and VACUUM in SQL."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.errors import (
    InvalidSettingError,
    RetentionTooShortError,
    StatementSyntaxError,
    UnsupportedStatementError,
)
from tests.unit.engine.house import House, other_rows, side_by_side


@pytest.mark.connect(gate=True)
def test_optimize_and_vacuum_run_in_sql_and_change_no_rows(house: House) -> None:
    house.sql("create table orders (id bigint, day date) partitioned by (day)")
    for day in (1, 1, 2, 2):
        house.sql(f"insert into orders values ({day}, date'2024-01-0{day}')")
    before = house.rows("select * from orders")
    (answer,) = house.sql(
        "optimize orders where day >= current_date() - interval 100 years and day < '2024-01-02'"
    ).collect()
    metrics = answer["metrics"]
    assert (answer["path"], metrics["numFilesAdded"], metrics["numFilesRemoved"]) == (
        house.location("orders"),
        1,
        2,
    )
    assert (metrics["filesAdded"]["totalFiles"], metrics["totalConsideredFiles"], metrics["numBins"]) == (1, 2, 1)
    path = house.location("orders")
    (answer,) = house.sql(f"optimize delta.`{path}` zorder by (id)", txn=("nightly", 1)).collect()
    assert answer["metrics"]["numFilesRemoved"] == 3
    assert house.sql("optimize orders", txn=("nightly", 1)).collect()[0]["skipped"]
    assert house.rows("select * from orders") == before == other_rows(house, "orders")

    with pytest.raises(RetentionTooShortError, match=r"silt\.retentionDurationCheck\.enabled"):
        house.sql("vacuum orders retain 0 hours")
    for text, error in {"'7'": StatementSyntaxError, "-1": RetentionTooShortError}.items():
        with pytest.raises(error):
            house.sql(f"vacuum orders retain {text} hours")
    assert house.sql("vacuum orders dry run").collect() == []
    house.sql("set silt.retentionDurationCheck.enabled = perhaps")
    with pytest.raises(InvalidSettingError):
        house.sql("vacuum orders")
    house.sql("set silt.retentionDurationCheck.enabled = false")
    listed = house.sql(f"vacuum '{path}' full retain 0 hours dry run").collect()
    assert len(listed) == 5 and all(row["length"] > 0 for row in listed)
    (answer,) = house.sql("vacuum orders retain 0.0 hours").collect()
    assert (answer["numDeletedFiles"], answer["sizeOfDataDeleted"]) == (5, sum(row["length"] for row in listed))
    assert house.rows("select * from orders") == before == other_rows(house, "orders")
    assert [row["operation"] for row in house.sql("describe history orders limit 2").collect()] == [
        "VACUUM END",
        "VACUUM START",
    ]


@pytest.mark.parametrize("text", ["optimize t full", "vacuum t using inventory i"])
def test_unsupported_options_are_refused(house: House, text: str) -> None:
    house.sql("create table t as select 1 as id")
    with pytest.raises(UnsupportedStatementError):
        house.sql(text)


def test_a_merge_concurrent_with_an_optimize_is_applied_once(patient_house: House) -> None:
    house = patient_house
    house.sql("create table t as select id, 0 as n from range(100)")
    for start in (100, 200):
        house.sql(f"insert into t select id, 0 from range({start}, {start + 100})")
    other = house.another()

    def merge() -> None:
        for _ in range(2):
            house.sql("merge into t using (select 150 as id) s on t.id = s.id when matched then update set n = n + 1")

    def optimize() -> None:
        for start in (300, 400):
            other.sql("optimize t")
            other.sql(f"insert into t select id, 0 from range({start}, {start + 100})")

    side_by_side([merge, optimize])
    assert house.rows("select count(*), count(distinct id), sum(n), max(n) from t") == [(500, 500, 2, 2)]

"""`explain` in `silt sql`: the files that a query reads, and the reasons for skipping others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dbt.adapters.silt.engine.catalog.names.documents import View
from tests.unit.cli.house import House, rows

Silt = Callable[..., str]


@pytest.fixture
def orders(house: House) -> House:
    """Three files of ten rows."""
    log = house.create("main.orders", rows(0, 10))
    house.append(log, rows(10, 10))
    house.append(log, rows(20, 10))
    return house


def test_each_part_of_a_condition_shows_the_files_that_it_skips(orders: House, silt: Silt) -> None:
    text = "explain select name from orders where id >= 10 and sold < timestamp'2024-01-01 00:00:20Z'"
    assert silt("sql", text).splitlines() == [
        "answered by: the files, by Arrow",
        "silt.main.orders@v2: 3 files, 1 read",
        "  1 skipped by statistics of id [0, 9]: id >= 10",
        "  1 skipped by statistics of sold [2024-01-01 00:00:20.000Z, 2024-01-01 00:00:29.000Z]: "
        "sold < '2024-01-01 00:00:20Z'",
    ]


def test_an_answer_from_the_log_opens_no_file(orders: House, silt: Silt) -> None:
    assert silt("sql", "explain select count(*) from orders where id >= 20").splitlines() == [
        "answered by: the log",
        "silt.main.orders@v2: 3 files, 0 read",
        "  2 skipped by statistics of id [0, 19]: id >= 20",
        "  1 not opened: the log has the answer",
    ]


def test_a_limit_leaves_files_unopened(orders: House, silt: Silt) -> None:
    assert silt("sql", "explain select id from orders limit 11").splitlines() == [
        "answered by: the files, by Arrow",
        "silt.main.orders@v2: 3 files, 2 read",
        "  1 skipped by the limit: the other files have enough rows",
    ]


def test_explain_looks_through_views_and_joins(orders: House, silt: Silt) -> None:
    orders.catalog.put_view(View(orders.name("main.late"), "select * from orders where id > 25"))
    text = "explain select l.id from late l join orders o on l.id = o.id and o.id in (1, 2)"
    assert silt("sql", text).splitlines() == [
        "answered by: Spark",
        "silt.main.orders@v2: 3 files, 1 read",
        "  2 skipped by statistics of id [0, 19]: id > 25",
        "silt.main.orders@v2: 3 files, 1 read",
        "  2 skipped by statistics of id [10, 29]: id in (1, 2)",
    ]


def test_the_explanation_is_available_as_json(orders: House, as_json: Callable[..., Any]) -> None:
    assert as_json("sql", "explain select id from orders where id < 5") == {
        "answered_by": "files",
        "tables": [
            {
                "table": "silt.main.orders",
                "version": 2,
                "files": 3,
                "files_read": 1,
                "skipped": [
                    {
                        "files": 2,
                        "by": "statistics",
                        "condition": "id < 5",
                        "ranges": [{"column": "id", "min": 10, "max": 29}],
                    }
                ],
                "skipped_by_limit": 0,
                "answered_by_log": False,
                "size_in_bytes_read": orders.catalog.table(orders.name("main.orders"))
                .snapshot()
                .files["size"][0]
                .as_py(),
            }
        ],
        "not_looked_at": [],
    }


def test_parts_that_only_spark_can_evaluate_are_named(orders: House, silt: Silt) -> None:
    printed = silt("sql", "explain select * from orders timestamp as of '2024-01-01' a join information_schema.tables")
    assert "orders: only Spark knows what it reads" in printed
    assert "information_schema.tables: only Spark knows what it reads" in printed

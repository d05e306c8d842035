"""`silt show --rows`: rows of a table, without Spark."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from dbt.adapters.silt.cli.main import main
from dbt.adapters.silt.cli.tables.rows import ShownRows
from dbt.adapters.silt.engine.catalog.names.documents import View
from tests.unit.cli.house import House, rows

AsJson = Callable[..., Any]


@pytest.fixture
def orders(house: House) -> House:
    """A table of 12 rows in two files, and three more rows that a deletion vector deletes."""
    log = house.create("main.orders", rows(0, 10), {"delta.enableDeletionVectors": "true"})
    house.append(log, [{**row, "price": Decimal("1.50")} for row in rows(10, 5)], ("stream", 4))
    house.mark(log, [1, 2, 3])
    return house


def test_rows_are_aligned_below_their_columns(orders: House, silt: Callable[..., str]) -> None:
    heading, *lines = silt("show", "main.orders", "--rows", "--where", "id between 8 and 10").splitlines()
    assert heading == "id  name     price  sold"
    assert sorted(lines) == [
        " 8  name 8    null  2024-01-01 00:00:08.000000Z",
        " 9  name 9    null  2024-01-01 00:00:09.000000Z",
        "10  name 10   1.50  2024-01-01 00:00:10.000000Z",
    ]


def test_twenty_rows_are_shown_or_the_requested_number(house: House, as_json: AsJson) -> None:
    house.create("main.many", rows(0, 30), {})
    assert len(as_json("show", "main.many", "--rows")) == 20
    assert [row["id"] for row in as_json("show", "main.many", "--rows", "3")] == [0, 1, 2]
    assert len(as_json("show", "main.many", "--where", "id >= 25")) == 5


def test_columns_and_versions_can_be_selected(orders: House, as_json: AsJson) -> None:
    assert as_json("show", "main.orders@v0", "-r", "2", "--columns", "PRICE, id") == [
        {"price": None, "id": 0},
        {"price": None, "id": 1},
    ]
    assert as_json("show", "main.orders", "--columns", "id", "--where", "price = 1.5 and id > 13") == [{"id": 14}]


def test_an_empty_result_is_reported(orders: House, silt: Callable[..., str]) -> None:
    assert silt("show", "main.orders", "--where", "id < 0") == "no rows\n"


def test_a_map_is_an_object_even_if_it_is_empty() -> None:
    kind = pa.map_(pa.int64(), pa.map_(pa.string(), pa.decimal128(3, 1)))
    values = [[], None, [(1, []), (2, [("a", Decimal("1.5"))])]]
    shown = ShownRows.of(pa.table({"m": pa.array(values, kind), "a": [[], None, [1]]}))
    assert shown.rows == (({}, []), (None, None), ({"1": {}, "2": {"a": "1.5"}}, [1]))
    assert shown.cells()[0] == ["{}", "[]"]


def test_a_query_that_needs_spark_is_refused(orders: House, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(orders.folder)
    assert main(["show", "main.orders", "--where", "id + 1 = 2", "--warehouse", folder]) == 2
    assert "`id + 1 = 2` can only be evaluated by Spark" in capsys.readouterr().err


def test_a_view_has_no_rows_without_spark(orders: House, capsys: pytest.CaptureFixture[str]) -> None:
    orders.catalog.put_view(View(orders.name("main.v"), "select 1"))
    assert main(["show", "v", "--rows", "--warehouse", str(orders.folder)]) == 2
    assert "it is a view, whose rows only Spark computes" in capsys.readouterr().err


@pytest.mark.parametrize("number", ["0", "-1", "x"])
def test_the_number_of_rows_must_be_positive(orders: House, number: str) -> None:
    with pytest.raises(SystemExit):
        main(["show", "main.orders", f"--rows={number}", "--warehouse", str(orders.folder)])


def test_no_numpy_and_no_spark_are_loaded(orders: House) -> None:
    code = (
        "import sys; from dbt.adapters.silt.cli.main import main; main(); "
        "print([name for name in ('numpy', 'pandas', 'pyspark', 'agate') if sys.modules.get(name)])"
    )
    arguments = ["show", "main.orders", "--rows", "1", "--warehouse", str(orders.folder)]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_bytes_that_are_no_text_are_shown_as_replacement_characters() -> None:
    data = pa.array([b"name\xa011", b"ok", None], pa.binary())
    texts = pa.Array.from_buffers(pa.string(), len(data), data.buffers())
    lists = pa.ListArray.from_arrays([0, 1, 2, 3], texts)
    maps = pa.MapArray.from_arrays([0, 1, 2, 2], texts[:2], texts[:2])
    found = ShownRows.of(pa.table({"text": texts, "list": lists, "map": maps}))
    assert found.rows[0] == ("name\ufffd11", ["name\ufffd11"], {"name\ufffd11": "name\ufffd11"})
    assert found.rows[1:] == (("ok", ["ok"], {"ok": "ok"}), (None, [None], {}))

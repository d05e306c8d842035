"""`silt show`: the state of a table at a version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dbt.adapters.silt.cli.main import main
from dbt.adapters.silt.engine.catalog.names.documents import View
from dbt.adapters.silt.engine.kernel.table.paths import commit_path
from dbt.adapters.silt.engine.sql.ast import ViewColumn
from tests.unit.cli.house import House, rows
from tests.unit.engine.kernel.log_builder import stated_at

AsJson = Callable[..., Any]


@pytest.fixture
def orders(house: House) -> House:
    """A table of three versions."""
    log = house.create("main.orders", rows(0, 10), {"delta.enableDeletionVectors": "true", "owner": "künden"})
    house.append(log, rows(10, 5), ("stream", 4))
    house.mark(log, [1, 2, 3])
    return house


def test_a_table_is_shown_with_its_rows_files_and_statistics(orders: House, as_json: AsJson) -> None:
    shown = as_json("show", "main.orders")
    assert (shown["version"], shown["rows"], shown["rows_marked_deleted"], shown["files"]) == (2, 12, 3, 2)
    assert shown["features"] == ["appendOnly", "deletionVectors", "invariants"]
    assert shown["properties"] == {"delta.enableDeletionVectors": "true", "owner": "künden"}
    assert [(each["app_id"], each["version"]) for each in shown["transactions"]] == [("stream", 4)]
    key, name, price, sold = shown["columns"]
    assert key == {
        "name": "id",
        "type": "bigint",
        "nullable": False,
        "comment": "the key",
        "default": None,
        "generated_as": None,
        "min": 0,
        "max": 14,
        "nulls": 0,
    }
    assert (name["min"], name["max"], name["nulls"]) == ("name 0", "name 9", 0)
    assert (price["type"], price["min"], price["nulls"]) == ("decimal(12,2)", None, 15)
    assert (sold["min"], sold["max"]) == ("2024-01-01 00:00:00.000Z", "2024-01-01 00:00:14.000Z")


@pytest.mark.parametrize("suffix", ["@v1", "@1", "@2024-01-02", "@2024-01-02T01:00+01:00", "@2024-01-01 23:59:59Z"])
def test_an_earlier_version_of_a_table_is_shown(orders: House, as_json: AsJson, suffix: str) -> None:
    folder = orders.folder / "main" / "orders"
    for version, at in enumerate((1_700_000_000, 1_704_067_200, 1_704_200_000)):
        stated_at(folder / commit_path(version), at * 1000)
    for name in ("main.orders", str(folder), f"delta.`{folder}`"):
        shown = as_json("show", f"{name}{suffix}")
        assert (shown["version"], shown["rows"], shown["committed_at"]) == (1, 15, "2024-01-01T00:00:00.000Z")


@pytest.mark.parametrize("name", ["main.orders", "MAIN.Orders", "silt.main.orders", "`main`.`orders`", "orders"])
def test_a_name_is_found_in_any_case_and_quoting(orders: House, as_json: AsJson, name: str) -> None:
    assert as_json("show", name)["table"] == "silt.main.orders"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("main.order", "SILT_RELATION_NOT_FOUND"),
        ("other.orders", "SILT_SCHEMA_NOT_FOUND"),
        ("main.orders@v9", "there is no version 9"),
        ("main.orders@1999-01-01", "SILT_VERSION_NOT_FOUND"),
        ("a.b.c.d", "more than three parts"),
        ("main..orders", "is not the name of a table"),
        ("", "is not the name of a table"),
        ("./nothing", "SILT_NOT_A_TABLE"),
    ],
)
def test_a_missing_table_is_invalid_input(
    orders: House, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    assert main(["show", text, "--warehouse", str(orders.folder)]) == 2
    printed = capsys.readouterr()
    assert (printed.out, said in printed.err) == ("", True)


def test_a_table_is_shown_as_lines_for_people(orders: House, silt: Callable[..., str]) -> None:
    lines = silt("show", "main.orders").splitlines()
    assert lines[0] == "table     silt.main.orders"
    assert "rows      12, 3 more deleted by deletion vectors" in lines
    assert "id      bigint         no    0                         14                            0  the key" in lines
    assert "owner                        künden" in lines


def test_a_view_is_shown_with_its_query(house: House, silt: Callable[..., str], as_json: AsJson) -> None:
    house.create("main.orders", [])
    columns = (ViewColumn("id", "the key"), ViewColumn("n", None))
    view = View(house.name("main.v"), "select id,\n  1 as n\nfrom orders", columns, "why", {"a": "b"}, "silt", "main")
    house.catalog.put_view(view)
    shown = silt("show", "v")
    assert shown.endswith("select id,\n  1 as n\nfrom orders\n")
    assert "the key" in shown
    found = as_json("show", "main.v")
    assert (found["view"], found["text"], found["comment"]) == ("silt.main.v", view.text, "why")
    assert found["columns"] == [{"name": "id", "comment": "the key"}, {"name": "n", "comment": None}]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "v@0"), "a view has no versions"),
        (
            ("history", "orders@0"),
            "`orders@0` names one version, but the history shows all of them",
        ),
        (("history", "orders@2026-01-01"), "`silt show orders@2026-01-01` for that version"),
    ],
)
def test_a_version_is_refused_for_a_relation_without_versions(
    house: House, capsys: pytest.CaptureFixture[str], arguments: tuple[str, str], said: str
) -> None:
    house.create("main.orders", [])
    house.catalog.put_view(View(house.name("main.v"), "select 1"))
    assert main([*arguments, "--warehouse", str(house.folder)]) == 2
    assert said in capsys.readouterr().err


def test_an_empty_table_is_shown(house: House, as_json: AsJson) -> None:
    house.create()
    shown = as_json("show", "main.orders")
    assert (shown["rows"], shown["files"], shown["size_in_bytes"]) == (0, 0, 0)
    assert [(each["min"], each["max"], each["nulls"]) for each in shown["columns"]] == [(None, None, 0)] * 4


def test_a_unique_table_of_another_schema_is_found_by_its_unqualified_name(
    house: House, as_json: AsJson, capsys: pytest.CaptureFixture[str]
) -> None:
    house.create("staging.payments", rows(0, 3))
    assert as_json("show", "payments")["table"] == "silt.staging.payments"
    assert as_json("show", "payments@v0")["rows"] == 3
    assert as_json("history", "payments")["table"] == "silt.staging.payments"
    house.create("other.payments", rows(0, 3))
    house.create("main.orders", rows(0, 3))
    for name in ("payments", "main.payments"):
        assert main(["show", name, "--warehouse", str(house.folder)]) == 2
        said = "silt.main.payments: the table or view does not exist. Did you mean other.payments or staging.payments?"
        assert said in capsys.readouterr().err


def test_a_mistyped_name_is_refused_with_similar_names(orders: House, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("ordrs", "main.ordrs", "man.orders", "Orders@v9"):
        assert main(["show", name, "--warehouse", str(orders.folder)]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert [each.rpartition(". ")[2] for each in errors[:3]] == ["Did you mean main.orders?"] * 3
    assert main(["show", "qqqqqqqq", "--warehouse", str(orders.folder)]) == 2
    assert "the table or view does not exist. Check the name" in capsys.readouterr().err

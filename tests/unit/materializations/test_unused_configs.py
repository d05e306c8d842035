"""Configs of other warehouses are reported once in a command."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError
from dbt_common.invocation import reset_invocation_id

from dbt.adapters.silt.materializations.unused_configs import warnings


def node(name: str, **config: Any) -> dict[str, Any]:
    return {"name": name, "config": config}


def test_a_config_is_reported_once_with_the_models_that_have_it() -> None:
    reset_invocation_id()
    nodes = [node(f"m{number}", location_root="/x") for number in range(8)] + [node("other")]
    (said,) = warnings(nodes[3], nodes)
    assert said == (
        "The config `location_root` has no effect: the warehouse chooses the folder of a table "
        "(m3, m0, m1, m2, m4 and 3 more)"
    )
    assert warnings(nodes[4], nodes) == []
    assert warnings(node("other", location_root=None, transient=False, file_format="DELTA"), nodes) == []
    (format_said,) = warnings(node("iced", table_format="iceberg"), nodes)
    assert format_said == "The config `table_format` has no effect: tables here are Delta tables (iced)"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"file_format": "detla"}, "`file_format` has no effect"),
        ({"table_format": "paimon"}, "`table_format` has no effect"),
        ({"partition_by": {"field": "at", "data_type": "timestamp"}}, "`field: at, data_type: timestamp` is not a"),
        ({"partition_by": ["bucket(4, id)"], "incremental_strategy": "merge"}, "`bucket(4, id)` is not a column"),
        ({"partitions": ["current_date"]}, "`partitions` has no effect"),
    ],
)
def test_a_form_of_another_warehouse_causes_a_warning_and_no_error(config: dict[str, Any], said: str) -> None:
    reset_invocation_id()
    (warning,) = warnings(node("m", **config), [])
    assert said in warning


def test_a_view_whose_rows_would_be_quarantined_causes_a_warning() -> None:
    reset_invocation_id()
    table, view = (node(each, materialized=each, on_failure="quarantine") for each in ("table", "view"))
    assert warnings(table, [table, view]) == []
    assert warnings(view, [table, view]) == [
        "The config `on_failure` has no effect: a view stores no rows to quarantine, and its tests run after it, as "
        "without audits (view)"
    ]


@pytest.mark.parametrize(
    "config",
    [
        {"partition_by": ["bucket(4, id)"], "incremental_strategy": "insert_overwrite"},
        {"partitions": ["current_date"], "incremental_strategy": "insert_overwrite"},
        {"tblproperties": ["delta.appendOnly"]},
    ],
)
def test_a_form_on_which_the_rows_or_the_table_depend_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(DbtRuntimeError):
        warnings(node("m", **config), [])

"""Configs of other warehouses: what is said of them, and how often."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError
from dbt_common.invocation import reset_invocation_id

from dbt.adapters.silt.materializations.unused_configs import warnings


def node(name: str, **config: Any) -> dict[str, Any]:
    return {"name": name, "config": config}


def test_a_config_is_said_once_with_the_models_that_have_it() -> None:
    reset_invocation_id()
    nodes = [node(f"m{number}", location_root="/x") for number in range(8)] + [node("other")]
    (said,) = warnings(nodes[3], nodes)
    assert said == (
        "The config `location_root` has no effect: the warehouse decides where a table's folder is "
        "(m3, m0, m1, m2, m4 and 3 more)"
    )
    assert warnings(nodes[4], nodes) == []
    assert warnings(node("other", location_root=None, transient=False, file_format="DELTA"), nodes) == []
    (format_said,) = warnings(node("iced", table_format="iceberg"), nodes)
    assert format_said == "The config `table_format` has no effect: tables here are Delta tables (iced)"


@pytest.mark.parametrize(
    "config", [{"file_format": "detla"}, {"table_format": "paimon"}, {"partition_by": {"field": "x"}}]
)
def test_a_value_that_no_table_can_be_made_with_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(DbtRuntimeError):
        warnings(node("m", **config), [])

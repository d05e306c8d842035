"""The names of units of work: equal for the same work, different for other work."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from dbt.adapters.silt.records.units import (
    FIRST,
    REFRESHED,
    RunContext,
    clone_unit,
    is_forgotten_on_replace,
    main_unit,
    model_hook_scope,
    node_scope,
    on_run_hook_scope,
    run_operation_scope,
    text_hash,
)

CONTEXT = RunContext(project="shop", target="dev", run_id="R1")


def model(**fields: Any) -> dict[str, Any]:
    return {"unique_id": "model.shop.orders", "config": {}, **fields}


def test_a_nodes_write_is_named_by_project_node_and_run() -> None:
    unit = main_unit(CONTEXT, model(), False, "c0ffee")
    assert unit.txn == ("silt/shop/model.shop.orders/R1/main", FIRST)
    assert unit.checksum == "c0ffee"


@pytest.mark.parametrize("context", [CONTEXT, RunContext("shop", "dev", "R1", empty=True)])
def test_only_microbatches_are_forgotten_when_their_table_is_replaced(context: RunContext) -> None:
    batch = {"id": "20240103", "event_time_end": datetime(2024, 1, 4, tzinfo=timezone.utc)}
    assert is_forgotten_on_replace(main_unit(context, model(batch=batch), False, None).app_id)
    assert is_forgotten_on_replace(main_unit(context, model(unique_id="model.a/b@c", batch=batch), False, None).app_id)
    assert not is_forgotten_on_replace(main_unit(context, model(), False, None).app_id)
    assert not is_forgotten_on_replace(main_unit(context, model(unique_id="model.a/b@c"), False, None).app_id)
    hook = model_hook_scope(context, model(), "post_hook", "silt.main.orders@1", False).unit("select 1", 1)
    assert not is_forgotten_on_replace(hook.app_id)
    assert not is_forgotten_on_replace("silt/a/b/c/d@e/load") and not is_forgotten_on_replace("load")


def test_a_unit_has_the_commit_settings_of_its_nodes_config() -> None:
    unit = main_unit(
        CONTEXT, model(config={"user_metadata": "from dbt", "isolation_level": "Serializable"}), False, None
    )
    assert (unit.user_metadata, unit.isolation_level) == ("from dbt", "Serializable")
    assert unit == main_unit(CONTEXT, model(), False, None)


def test_a_clone_is_other_work_than_the_build_of_its_node() -> None:
    first, refreshed = (clone_unit(CONTEXT, model(), full_refresh) for full_refresh in (False, True))
    assert first.txn == ("silt/shop/model.shop.orders/R1/clone", FIRST)
    assert refreshed.txn == (first.app_id, REFRESHED)
    assert not is_forgotten_on_replace(first.app_id)


def test_a_full_refresh_is_a_later_version_of_the_same_unit() -> None:
    first, refreshed = (main_unit(CONTEXT, model(), full, None) for full in (False, True))
    assert first.app_id == refreshed.app_id
    assert first.version < refreshed.version == REFRESHED


@pytest.mark.parametrize(
    "other",
    [
        main_unit(RunContext("shop", "dev", "R2"), model(), False, None),
        main_unit(RunContext("store", "dev", "R1"), model(), False, None),
        main_unit(RunContext("shop", "dev", "R1", empty=True), model(), False, None),
        main_unit(RunContext("shop", "dev", "R1", sample=True), model(), False, None),
        main_unit(CONTEXT, model(unique_id="model.shop.items"), False, None),
    ],
    ids=["run", "project", "empty", "sample", "node"],
)
def test_other_work_has_another_name(other: Any) -> None:
    assert other.app_id != main_unit(CONTEXT, model(), False, None).app_id


def test_a_batch_is_named_with_the_end_of_its_window() -> None:
    def batch(hour: int) -> dict[str, Any]:
        return {"id": "20260301", "event_time_end": datetime(2026, 3, 1, hour, tzinfo=timezone.utc)}

    morning, evening = (main_unit(CONTEXT, model(batch=batch(hour)), False, None) for hour in (9, 21))
    assert morning.app_id == "silt/shop/model.shop.orders/R1/20260301@2026-03-01T09:00:00+00:00/main"
    assert morning.app_id != evening.app_id


def test_a_part_of_a_write_is_other_work_and_is_forgotten_like_the_whole() -> None:
    batch = {"id": "20240103", "event_time_end": datetime(2024, 1, 4, tzinfo=timezone.utc)}
    whole, batched = main_unit(CONTEXT, model(), True, None), main_unit(CONTEXT, model(batch=batch), False, None)
    assert whole.part(1).txn == ("silt/shop/model.shop.orders/R1/main+1", REFRESHED)
    assert whole.part(1) != whole.part(2)
    assert (whole.part(1).is_batch, batched.part(1).is_batch) == (False, True)


def test_run_ids_with_a_slash_and_an_escaped_slash_have_different_names() -> None:
    one = main_unit(RunContext("shop", "dev", "a/b"), model(), False, None)
    two = main_unit(RunContext("shop", "dev", "a%2Fb"), model(), False, None)
    assert one.app_id.count("/") == two.app_id.count("/") == 4
    assert one.app_id != two.app_id


def test_a_hooks_statements_are_named_by_text_and_occurrence() -> None:
    scope = model_hook_scope(CONTEXT, model(), "post_hook", "silt.main.orders", False)
    first, second = scope.unit("insert into log values (1)", 1), scope.unit("insert into log values (1)", 2)
    assert first.app_id == (
        f"silt/shop/model.shop.orders/R1/dev:silt.main.orders/post_hook/{text_hash('insert into log values (1)')}/1"
    )
    assert first.app_id != second.app_id
    assert first.app_id != scope.unit("insert into log values (2)", 1).app_id
    assert first.version == FIRST


def test_a_hook_of_another_relation_is_other_work() -> None:
    dev = model_hook_scope(CONTEXT, model(), "pre_hook", "silt.dev.orders", False)
    prod = model_hook_scope(CONTEXT, model(), "pre_hook", "silt.prod.orders", False)
    assert dev.prefix != prod.prefix


def test_an_on_run_hook_keeps_its_name_when_another_hook_is_added_before_it() -> None:
    first = on_run_hook_scope(CONTEXT, "operation.shop.shop-on-run-end-0", False)
    second = on_run_hook_scope(CONTEXT, "operation.shop.shop-on-run-end-1", False)
    assert first is not None
    assert first == second
    assert first.prefix == "silt/shop/shop/R1/dev/on-run-end"


@pytest.mark.parametrize("node", ["model.shop.orders", "operation.shop.my_macro", "test.shop.unique_orders"])
def test_other_nodes_have_no_on_run_scope(node: str) -> None:
    assert on_run_hook_scope(CONTEXT, node, False) is None


def test_an_operations_statements_are_named_by_its_macro() -> None:
    unit = run_operation_scope(CONTEXT, "load").unit("insert into t values (1)", 2)
    assert unit.app_id == f"silt/shop/load/R1/dev/run_operation/{text_hash('insert into t values (1)')}/2"


def test_the_statements_of_a_batch_have_own_names_and_are_forgotten_with_its_rows() -> None:
    batch = {"id": "20240103", "event_time_end": "2024-01-04"}
    whole, batched = (node_scope(CONTEXT, each, "silt.main.orders", False) for each in (model(), model(batch=batch)))
    name = text_hash("select 1")
    assert whole.unit("select 1", 1).app_id == (
        f"silt/shop/model.shop.orders/R1/dev:silt.main.orders/statement/{name}/1"
    )
    assert batched.unit("select 1", 1).app_id == (
        f"silt/shop/model.shop.orders/R1/dev:silt.main.orders/20240103@2024-01-04/statement/{name}/1"
    )
    assert not is_forgotten_on_replace(whole.unit("select 1", 1).app_id)
    assert is_forgotten_on_replace(batched.unit("select 1", 1).app_id)


def test_a_nodes_own_write_is_found_among_the_units_of_its_table() -> None:
    batch = {"id": "20240103", "event_time_end": "2024-01-04"}
    write = main_unit(CONTEXT, model(), False, None)
    batched = main_unit(CONTEXT, model(batch=batch), False, None)
    own = node_scope(CONTEXT, model(), "silt.main.orders", False).own_write
    of_batch = node_scope(CONTEXT, model(batch=batch), "silt.main.orders", False).own_write
    hook = model_hook_scope(CONTEXT, model(), "pre_hook", "silt.main.orders", True).own_write
    assert own is not None and of_batch is not None and hook is not None
    assert own.among(dict([write.txn])) == write.app_id
    assert own.among(dict([batched.txn])) == batched.app_id, "before the first batch is before all of them"
    assert of_batch.among(dict([write.txn])) is None
    assert of_batch.among(dict([batched.txn])) == batched.app_id
    assert hook.among(dict([write.txn])) is None, "a full refresh is still to come"
    assert own.among({write.app_id: -1}) is None
    others = (write.part(1), main_unit(RunContext("shop", "dev", "R1", empty=True), model(), False, None))
    assert own.among(dict(each.txn for each in others)) is None
    assert own.among(dict([main_unit(CONTEXT, model(unique_id="model.shop.orders2"), False, None).txn])) is None
    assert model_hook_scope(CONTEXT, model(), "post_hook", "silt.main.orders", False).own_write is None

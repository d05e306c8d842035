"""The calls of `silt_changes` that the macro writes, and the models that it refuses."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.silt.materializations.incremental.consumed_changes import ChangesOptions, changes_call, takes_upserts

UPSERTS = ChangesOptions("upserts", ("id", "a`b"))


def relation(identifier: str, **more: Any) -> SimpleNamespace:
    return SimpleNamespace(database="silt", schema="main", identifier=identifier, **more)


def call(options: ChangesOptions = ChangesOptions(), ref: Any = relation("orders"), **config: Any) -> str:  # noqa: B008
    model = {"name": "daily", "config": {"materialized": "incremental", **config}}
    return changes_call(model, ref, relation("daily"), options)


def test_the_model_is_the_consumer() -> None:
    assert call() == "silt_changes('`silt`.`main`.`orders`', consumer => '`silt`.`main`.`daily`')"
    assert "consumer => '`silt`.`main`.`daily`', after => 7" in call(ChangesOptions(after=7))


def test_upserts_have_a_key_and_are_recognised_in_the_query() -> None:
    text = call(UPSERTS, unique_key="id")
    assert text.endswith("as => 'upserts', key => '`id`, `a``b`')")
    assert takes_upserts(f"select * from {text}")
    assert not takes_upserts(f"select * from {call()}")
    assert not takes_upserts("select * from silt_changes('t', as => 'upserts', key => 'id')")


def test_an_empty_input_has_no_changes_and_is_not_consumed() -> None:
    assert call(ref=relation("orders", limit=0)) == "(select * from silt_changes('`silt`.`main`.`orders`') where false)"


def test_in_a_unit_test_the_given_rows_are_the_changes() -> None:
    assert changes_call({"resource_type": "unit_test"}, "__dbt__cte__orders", None, UPSERTS) == "__dbt__cte__orders"


@pytest.mark.parametrize(
    ("options", "config", "message"),
    [
        (ChangesOptions(), {"materialized": "table"}, "is materialized as table"),
        (ChangesOptions(), {"materialized": "ephemeral"}, "is materialized as ephemeral"),
        (ChangesOptions(), {"incremental_strategy": "microbatch"}, "append or merge, not `microbatch`"),
        (ChangesOptions(), {"incremental_strategy": "delete+insert"}, "not `delete"),
        (ChangesOptions("rows"), {}, "not 'rows'"),
        (ChangesOptions("upserts"), {"unique_key": "id"}, "needs a key"),
        (UPSERTS, {"incremental_strategy": "append", "unique_key": "id"}, "needs the strategy merge"),
        (UPSERTS, {"incremental_strategy": "default"}, "needs the strategy merge"),
    ],
)
def test_models_that_cannot_consume_changes_are_refused(
    options: ChangesOptions, config: dict[str, Any], message: str
) -> None:
    with pytest.raises(CompilationError, match=message):
        call(options, **config)


def test_samples_strings_and_ephemeral_models_are_refused() -> None:
    with pytest.raises(CompilationError, match="a sample of the changes"):
        call(ref=relation("orders", event_time_filter=object()))
    with pytest.raises(CompilationError, match="needs a relation"):
        call(ref="main.orders")
    with pytest.raises(CompilationError, match="is ephemeral"):
        call(ref=relation("__dbt__cte__orders", is_cte=True))

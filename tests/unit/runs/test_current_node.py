"""The node that a thread runs: its own context, and errors that list its commits."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from dbt.events.types import GenericExceptionOnRun
from dbt_common.events.contextvars import log_contextvars
from dbt_common.events.event_manager_client import add_callback_to_manager, cleanup_event_logger
from dbt_common.events.functions import fire_event
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.silt.engine.kernel.errors import RelationNotFoundError
from dbt.adapters.silt.runs.committed_work import CommittedBatches
from dbt.adapters.silt.runs.current_node import CurrentNode
from dbt.adapters.silt.runs.response import SiltResponse

NODE = SimpleNamespace(unique_id="model.shop.orders", resource_type="model")
COMMITTED = SiltResponse("OK", run_id="R1", table="silt.main.orders", table_version=3)


def not_cancelled() -> bool:
    return False


def test_a_node_has_its_own_context_and_the_outer_context_is_restored_afterwards() -> None:
    current = CurrentNode(CommittedBatches())
    outer = current.context
    with current.scope(NODE, not_cancelled):
        assert current.context is not outer and current.context.node is NODE
    assert current.context is outer and outer.node is None


@pytest.mark.parametrize("kind", ["model", "sql_operation"])
def test_a_missing_relation_behind_a_view_is_built_with_the_inputs_of_the_node(kind: str) -> None:
    place = {"database": "silt", "schema": "main", "resource_type": "model"}
    view = {"unique_id": "model.shop.seen", "name": "seen", "alias": "seen", "depends_on": {"nodes": [NODE.unique_id]}}
    current = CurrentNode(CommittedBatches())
    current.know([{**place, **vars(NODE), "name": "orders", "alias": "orders"}, {**place, **view}])
    reads = SimpleNamespace(nodes=["model.shop.seen"])
    daily = SimpleNamespace(
        **{**place, "resource_type": kind}, name="daily", alias="daily", unique_id="model.shop.daily", depends_on=reads
    )
    with current.scope(daily, not_cancelled):
        said = str(current.explained(RelationNotFoundError("the table does not exist", table="silt.main.orders")))
    assert f"Build it first: `dbt build --select +{'daily' if kind == 'model' else 'orders'}`" in said


@pytest.mark.parametrize(
    ("reads", "remedy"),
    [
        ([], "The model orders of this project creates it: write `{{ ref('orders') }}`, so that dbt builds it first."),
        (["model.shop.orders"], "Build it first: `dbt build --select +daily`."),
    ],
)
def test_a_missing_relation_of_the_project_is_named_by_its_node(reads: list[str], remedy: str) -> None:
    current = CurrentNode(CommittedBatches())
    place = {"database": "silt", "schema": "main"}
    current.know([{**vars(NODE), **place, "name": "orders", "alias": "Sales"}, {"resource_type": "test"}])
    daily = SimpleNamespace(name="daily", alias="daily", **place, depends_on=SimpleNamespace(nodes=reads), **vars(NODE))
    with current.scope(daily, not_cancelled):
        said = current.explained(RelationNotFoundError("the table does not exist", table="silt.main.sales"))
        assert str(said).endswith(f"silt.main.sales: the table does not exist. {remedy}")
        other = RelationNotFoundError("the table does not exist", table="silt.main.other")
        assert current.explained(other) is other


def test_threads_do_not_see_each_others_nodes() -> None:
    current = CurrentNode(CommittedBatches())
    with current.scope(NODE, not_cancelled), ThreadPoolExecutor(1) as other:
        assert other.submit(lambda: current.context.node).result() is None


def test_an_error_that_ends_a_node_lists_the_nodes_commits() -> None:
    current = CurrentNode(CommittedBatches())
    with pytest.raises(DbtRuntimeError) as failed, current.scope(NODE, not_cancelled):
        current.context.committed.note(NODE.unique_id, COMMITTED)
        raise DbtRuntimeError("the hook failed")
    assert failed.value.msg.startswith("the hook failed\nalready committed as silt.main.orders@v3;")


def test_an_error_of_a_node_without_commits_is_not_changed() -> None:
    current = CurrentNode(CommittedBatches())
    with pytest.raises(DbtRuntimeError) as failed, current.scope(NODE, not_cancelled):
        raise DbtRuntimeError("the hook failed")
    assert failed.value.msg == "the hook failed"


def test_a_cancelled_node_warns_with_its_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    warnings: list[str] = []
    monkeypatch.setattr("dbt.adapters.silt.runs.current_node.logger.warning", warnings.append)
    current = CurrentNode(CommittedBatches())
    with pytest.raises(DbtRuntimeError), current.scope(NODE, lambda: True):
        current.context.committed.note(NODE.unique_id, COMMITTED)
        raise DbtRuntimeError("cancelled")
    assert [each.partition(";")[0] for each in warnings] == ["Cancelled: already committed as silt.main.orders@v3"]


def batch(current: CurrentNode, batch_id: str, error: str | None = None) -> None:
    """Runs a batch of the model as dbt does: an error of its materialization is logged and not raised."""
    own = {"batch": SimpleNamespace(id=batch_id), "config": {}, "tags": []}
    node = SimpleNamespace(unique_id=NODE.unique_id, resource_type="model", **own)
    with current.scope(node, not_cancelled), log_contextvars(node_info={"unique_id": NODE.unique_id}):
        current.begin(SimpleNamespace(model=node))
        if error is None:
            current.end()
        else:
            fire_event(GenericExceptionOnRun(unique_id=NODE.unique_id, exc=f"Exception on worker thread. {error}"))
        current.leave()


@pytest.fixture
def listening() -> Iterator[CurrentNode]:
    current = CurrentNode(CommittedBatches())
    add_callback_to_manager(current.on_event)
    yield current
    cleanup_event_logger()


def test_a_model_fails_with_the_reason_if_every_batch_failed(listening: CurrentNode) -> None:
    with pytest.raises(DbtRuntimeError) as failed, listening.scope(NODE, not_cancelled):
        batch(listening, "20260101", "`partion_by` is unknown")
    assert failed.value.msg == "batch 20260101: `partion_by` is unknown"


@pytest.mark.parametrize("earlier", [None, "an earlier run's"])
def test_a_model_with_a_successful_batch_keeps_dbts_result_and_warns_with_the_reason(
    listening: CurrentNode, earlier: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    monkeypatch.setattr("dbt.adapters.silt.runs.current_node.logger.warning", warnings.append)
    node = SimpleNamespace(unique_id=NODE.unique_id, resource_type="model", previous_batch_results=earlier)
    with listening.scope(node, not_cancelled):
        batch(listening, "20260101", None if earlier is None else "boom")
        batch(listening, "20260102", "boom")
    assert warnings == ["batch 20260102: boom" if earlier is None else "batch 20260101, 20260102: boom"]

"""The data tests that judge a node before its commit, and the configs of audits."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.silt.engine.audits.audit import Limit, OnFailure, Scope
from dbt.adapters.silt.materializations.audits import NodeTests, audits_of, is_audited, problems, writes_table

ORDERS, CUSTOMERS, SEEN, BELOW = "model.shop.orders", "model.shop.customers", "model.shop.seen", "model.shop.below"


def node(kind: str, parents: Collection[str] = (), attached: str | None = None, materialized: str = "table") -> Any:
    depends_on = SimpleNamespace(nodes=[*parents])
    config = SimpleNamespace(materialized=materialized)
    return SimpleNamespace(resource_type=kind, depends_on=depends_on, attached_node=attached, config=config)


def nodes(**tests: Any) -> Mapping[str, Any]:
    found = {
        CUSTOMERS: node("model"),
        ORDERS: node("model"),
        SEEN: node("model", [BELOW], materialized="view"),
        BELOW: node("model", [ORDERS]),
    }
    return found | {name: SimpleNamespace(**vars(each), name=name) for name, each in tests.items()}


def chosen(
    of: Mapping[str, Any], selected: Collection[str], unique_id: str = ORDERS, missing: Collection[str] = ()
) -> list[str]:
    """Returns the names of the tests before the commit of a node."""
    absent = [of[each] for each in missing]
    return [each.name for each in NodeTests(of, unique_id, selected, lambda node: node not in absent).before_commit()]


def test_a_generic_test_judges_only_the_node_to_which_it_is_attached() -> None:
    found = nodes(own=node("test", [ORDERS], ORDERS), other=node("test", [BELOW, ORDERS], BELOW))
    assert chosen(found, {ORDERS, BELOW}) == ["own"]
    assert chosen(found, {ORDERS, BELOW}, BELOW) == ["other"]


def test_a_singular_test_judges_each_node_that_it_names() -> None:
    found = nodes(few=node("test", [ORDERS]))
    assert chosen(found, {ORDERS}) == ["few"]
    assert chosen(found, {ORDERS}, CUSTOMERS) == []


@pytest.mark.parametrize("reads", [CUSTOMERS, BELOW, SEEN])
def test_a_test_that_reads_a_table_built_later_is_left_for_later(reads: str) -> None:
    found = nodes(known=node("test", [ORDERS, reads], ORDERS))
    assert chosen(found, {ORDERS, CUSTOMERS, BELOW}) == []


@pytest.mark.parametrize(("reads", "expected"), [(CUSTOMERS, ["known"]), (BELOW, []), (SEEN, [])])
def test_a_test_judges_with_another_table_unless_the_table_is_built_from_the_node(
    reads: str, expected: list[str]
) -> None:
    found = nodes(known=node("test", [ORDERS, reads], ORDERS))
    assert chosen(found, {ORDERS}) == expected
    assert chosen(found, {ORDERS}, missing=[reads]) == []


def test_a_test_that_reads_a_table_built_before_judges_the_node() -> None:
    found = {**nodes(known=node("test", [ORDERS, CUSTOMERS], ORDERS)), ORDERS: node("model", [CUSTOMERS])}
    assert chosen(found, {ORDERS, CUSTOMERS}) == ["known"]


def test_views_and_external_models_have_no_rows_to_judge() -> None:
    kinds = ("table", "incremental", "view", "ephemeral", "external")
    found = {each for each in kinds if writes_table({"resource_type": "model", "config": {"materialized": each}})}
    assert found == {"table", "incremental"}


def test_the_config_of_a_node_goes_before_the_profile() -> None:
    assert is_audited({}, "before_commit")
    assert not is_audited({"audit": "never"}, "before_commit")
    assert not is_audited({}, None)
    with pytest.raises(CompilationError, match="`audit` cannot be 'later'"):
        is_audited({"audit": "later"}, None)


def test_configs_become_the_settings_of_audits() -> None:
    config = {"scope": "changes", "on_failure": "quarantine", "audit_warnings": "refuse", "max_quarantined": 7}
    assert list(problems(config)) == []
    found = audits_of(config, (), "monday", ORDERS, "main.orders")
    assert (found.scope, found.on_failure, found.max_quarantined) == (Scope.CHANGES, OnFailure.QUARANTINE, Limit(7))
    assert found.refuse_warnings
    usual = audits_of({}, (), "monday", ORDERS, "main.orders")
    assert (usual.scope, usual.on_failure, usual.refuse_warnings) == (Scope.STATE, OnFailure.REFUSE, False)


def test_each_config_with_a_value_that_means_nothing_is_a_problem() -> None:
    wrong = {"scope": "rows", "on_failure": "drop", "audit_warnings": "no", "max_quarantined": "-1"}
    assert [text.split()[0].strip("`") for text in problems(wrong)] == list(wrong)

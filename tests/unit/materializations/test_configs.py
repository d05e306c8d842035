"""Misspelled names of configs, and the errors about them."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError
from dbt_common.invocation import reset_invocation_id

from dbt.adapters.silt.impl import SiltConfig
from dbt.adapters.silt.materializations.configs import check_configs, sample_warning
from dbt.adapters.silt.materializations.unused_configs import ConfigNames

NAMES = ConfigNames(SiltConfig)


def node(materialized: str = "table", kind: str = "model", package: str = "shop", **config: Any) -> dict[str, Any]:
    given = {"materialized": materialized, **config}
    return {"name": "orders", "resource_type": kind, "package_name": package, "config": given}


def checked(given: dict[str, Any]) -> list[str]:
    reset_invocation_id()
    return check_configs(given, NAMES, "shop", [])


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("partitioned_by", "partition_by"),
        ("partion_by", "partition_by"),
        ("partitionBy", "partition_by"),
        ("tbl_properties", "tblproperties"),
        ("merge_update_colums", "merge_update_columns"),
        ("skip_non_matched_step", "skip_not_matched_step"),
        ("unique_keys", "unique_key"),
        ("lookbak", "lookback"),
        ("persist_doc", "persist_docs"),
        ("post_hooks", "post_hook"),
        ("sql_headers", "sql_header"),
        ("on_schema_changes", "on_schema_change"),
        ("column_type", "column_types"),
        ("hard_delete", "hard_deletes"),
        ("updated_atd", "updated_at"),
        ("isolation_levels", "isolation_level"),
        ("snapshot_table_column_names", "snapshot_meta_column_names"),
    ],
)
@pytest.mark.parametrize(
    "given", [node(), node("view"), node("incremental"), node("external"), node("seed", "seed"), node("x", "snapshot")]
)
def test_a_name_that_is_nearly_right_is_refused_on_every_materialization(
    given: dict[str, Any], name: str, meant: str
) -> None:
    given = {**given, "config": {**given["config"], name: "x"}}
    with pytest.raises(CompilationError, match=f"`{name}` is unknown: did you mean `{meant}`\\? If not, .* in `meta`"):
        checked(given)


def test_configs_of_dbt_of_this_adapter_and_of_a_projects_macros_are_accepted() -> None:
    of_dbt = {"post-hook": [1], "pre-hook": [1], "docs": {"show": True}, "access": "public", "hard_deletes": "ignore"}
    of_python = {"config_keys_used": ["a"], "config_keys_defaults": [None], "meta_keys_used": ["b"], "packages": ["c"]}
    own = {"owner": "me", "partition_column": "day", "merged_by": "us", "keys": 1, "schema_name": "a", "tag_of": "x"}
    assert checked(node(**of_dbt, **of_python, **own, sql_header="set a = 1", transient=False)) == []  # type: ignore[arg-type]


def test_a_misspelled_name_without_a_value_is_accepted() -> None:
    assert checked(node(partion_by=None, unique_keys="")) == []


def test_a_config_of_another_adapter_is_not_taken_for_a_misspelled_name() -> None:
    [said] = checked(node(properties={"format": "'ORC'"}))
    assert said.startswith("The config `properties` has no effect: put information for readers into `tblproperties`")


def test_a_misspelled_name_in_a_package_causes_a_warning_because_users_cannot_change_it() -> None:
    given = node(package="elementary", partition_key="day")
    [said] = checked(given)
    assert said == (
        "The config `partition_key` is unknown and has no effect; `partition_by` is a config "
        "(orders of the package elementary)"
    )
    assert check_configs(given, NAMES, "shop", []) == [], "once in a run"


def test_all_problems_are_reported_together_with_the_kind_of_node() -> None:
    with pytest.raises(CompilationError) as raised:
        checked(node("incremental", partion_by="a", on_schema_change="never", target_alias=1))
    said = str(raised.value)
    assert "The configuration of this incremental model cannot be used:" in said and said.count("  - ") == 3
    with pytest.raises(CompilationError, match="The configuration of this seed cannot be used"):
        checked(node("seed", "seed", column_type={}))


def test_a_snapshots_key_that_is_named_twice_is_refused() -> None:
    with pytest.raises(CompilationError, match="`unique_key` names `id` twice"):
        checked(node("snapshot", "snapshot", unique_key=["id", "ID"]))
    assert checked(node("table", unique_key=["id", "id"])) == [], "a table has no use for a key"


@pytest.mark.parametrize("materialized", ["table", "view"])
def test_values_of_incremental_configs_are_checked_only_for_incremental_models(materialized: str) -> None:
    assert checked(node(materialized, on_schema_change="never")) == []


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (node("snapshot", "snapshot", unique_key=["id", ""]), "unique_key"),
        (node("snapshot", "snapshot", updated_at=" "), "updated_at"),
        (node("snapshot", "snapshot", check_cols=[""]), "check_cols"),
        (node("snapshot", "snapshot", dbt_valid_to_current=""), "dbt_valid_to_current"),
        (node("table", partition_by=""), "partition_by"),
        (node("table", partition_by=["a", " "]), "partition_by"),
        (node("incremental", liquid_clustered_by=""), "liquid_clustered_by"),
        (node("seed", "seed", delimiter=""), "delimiter"),
        (node("external", location=""), "location"),
    ],
)
def test_a_config_that_is_empty_or_contains_an_empty_string_is_refused(given: dict[str, Any], name: str) -> None:
    with pytest.raises(CompilationError, match=f"`{name}` is .*, which contains an empty name: leave it out"):
        checked(given)


@pytest.mark.parametrize("delimiter", ["\t", " ", ";", None])
def test_the_delimiter_of_a_seed_may_be_any_character(delimiter: str | None) -> None:
    assert checked(node("seed", "seed", delimiter=delimiter)) == []
    assert checked(node("external", delimiter=delimiter)) == []


@pytest.mark.parametrize("delimiter", ["||", "\\t", 1])
def test_a_delimiter_of_a_seed_that_is_not_one_character_is_refused(delimiter: Any) -> None:
    with pytest.raises(CompilationError, match="`delimiter` must be one character, but is"):
        checked(node("seed", "seed", delimiter=delimiter))


def test_an_empty_list_of_partitions_means_a_table_without_partitions() -> None:
    assert checked(node("table", partition_by=[], unique_key=None)) == []


def test_a_model_that_appends_for_lack_of_a_key_is_named_once_in_a_command() -> None:
    given = node("incremental", incremental_strategy="merge")
    [said] = checked(given)
    assert said.startswith("orders: `merge` without `unique_key` cannot match rows of the table")
    assert check_configs(given, NAMES, "shop", []) == []
    assert checked(node("table", incremental_strategy="merge")) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (node(write="all_rows"), "`write` must be `all` or `differences`, but is 'all_rows'"),
        (node(write="differences"), "`write: differences` needs `unique_key`"),
        (node(write="differences", unique_key=[]), "`write: differences` needs `unique_key`"),
        (node(write="differences", unique_key=["id", " "]), "`unique_key` is"),
        (node(write="differences", unique_key=["id", "ID"]), "`unique_key` names"),
        (node("incremental", write="differences", unique_key="id"), "is for models with `materialized: table`"),
        (node("seed", "seed", write="differences", unique_key="id"), "is for models with `materialized: table`"),
    ],
)
def test_a_table_that_writes_differences_needs_a_key(given: dict[str, Any], message: str) -> None:
    with pytest.raises(CompilationError, match=re.escape(message)):
        checked(given)


@pytest.mark.parametrize("config", [{"write": "all"}, {"write": "differences", "unique_key": "id"}])
def test_a_table_may_write_all_rows_or_differences(config: dict[str, Any]) -> None:
    assert checked(node(**config)) == []


def test_a_sample_warns_once_of_inputs_that_are_read_completely() -> None:
    def given(name: str, *parents: str, language: str = "sql", **config: Any) -> dict[str, Any]:
        own = {"unique_id": name, "language": language, "depends_on": {"nodes": parents}}
        return {**node(**config), **own, "name": name}

    inputs = {
        "people": {"name": "people", "source_name": "raw", "config": {"event_time": None}},
        "clicks": {"name": "clicks", "source_name": "raw", "config": {"event_time": "at"}},
        "days": given("days"),
        "inlined": given("inlined", materialized="ephemeral"),
    }
    names = ("people", "clicks", "days", "inlined")
    selected = [given("orders", *names), given("sums", "orders"), given("other", "more", language="python")]
    reset_invocation_id()
    said = sample_warning(selected, {**inputs, "orders": selected[0], "more": given("more")})
    assert said is not None and said.startswith("`--sample` reads all rows of days, raw.people: configure `event_time`")
    assert sample_warning(selected, inputs) is None
    reset_invocation_id()
    assert sample_warning(selected[1:2], {**inputs, "orders": given("orders", event_time="at")}) is None


def test_configs_next_to_config_in_a_properties_file_are_named() -> None:
    entry = {"name": "orders", "config": {"schema": "x"}, "description": "", "tags": [], "access": "public"}
    wrong = {"name": "days", "materialized": "table", "unique_key": "id", "docs": {}}

    def file(project: str, **sections: Any) -> SimpleNamespace:
        path = SimpleNamespace(original_file_path="models/p.yml")
        return SimpleNamespace(project_name=project, path=path, dict_from_yaml=sections)

    files = [
        file(
            "shop", models=[entry, wrong], seeds=None, sources=[wrong], snapshots=[{"name": "s", "strategy": "check"}]
        ),
        file("package", models=[wrong]),
        SimpleNamespace(project_name="shop"),
    ]
    assert list(NAMES.misplaced(files, "shop")) == [
        f"models/p.yml: {what} outside of `config`, where dbt ignores them: indent them below `config:`"
        for what in ("days has `materialized`, `unique_key`", "s has `strategy`")
    ]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            node("snapshot", "snapshot", hard_deletes="invalid"),
            "`hard_deletes` must be one of ignore, invalidate, new_record, but is 'invalid'",
        ),
        (
            node("snapshot", "snapshot", dbt_valid_to_current="9999-12-31"),
            "`dbt_valid_to_current` is the expression 9999-12-31, a subtraction: write the date as "
            "\"timestamp'9999-12-31'\"",
        ),
        ({**node("view"), "language": "python"}, "a view has no python code: use `materialized: table`"),
    ],
)
def test_a_value_that_dbt_ignores_or_refuses_without_its_config_is_named(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(CompilationError) as caught:
        checked(given)
    assert problem in str(caught.value)


def test_an_unknown_key_of_persist_docs_is_a_warning() -> None:
    [warning] = checked(node("table", persist_docs={"relation": True, "column": True}))
    assert (
        "`persist_docs` has no `column`, only `relation`, `columns`: it has no effect: did you mean `columns`?"
        in warning
    )


def test_an_unknown_key_of_snapshot_meta_column_names_is_a_warning() -> None:
    given = {"snapshot_meta_column_names": {"dbt_valid_frm": "begins"}}
    kept = node("snapshot", "snapshot", snapshot_meta_column_names={"dbt_valid_from": None})
    [warning] = checked({**kept, "unrendered_config": given})
    assert "`snapshot_meta_column_names` has no `dbt_valid_frm`, only `dbt_valid_from`, " in warning
    assert warning.endswith("it has no effect: did you mean `dbt_valid_from`?")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (
            "model",
            "the model has no contract: set `contract: {enforced: true}`, with the `data_type` of each column, or",
        ),
        ("seed", "only a model has a contract: use data tests"),
        ("snapshot", "only a model has a contract: use data tests"),
    ],
)
def test_constraints_without_a_contract_which_dbt_ignores_are_a_warning(kind: str, said: str) -> None:
    given = {"columns": {"id": {"constraints": [{"type": "not_null"}, {"type": "unique"}]}}}
    [warning] = checked({**node("table", kind), **given, "constraints": [{"type": "check", "expression": "id > 0"}]})
    assert f"the constraints `check`, `not_null` have no effect, because {said}" in warning


def test_constraints_of_a_contract_and_keys_cause_no_warning() -> None:
    rule = {"constraints": [{"type": "not_null", "columns": ["id"]}]}
    assert checked({**node("table", contract={"enforced": True}), **rule}) == []
    assert checked({**node("table"), "constraints": [{"type": "primary_key", "columns": ["id"]}]}) == []


def test_values_that_take_effect_are_accepted() -> None:
    assert checked(node("table", persist_docs={"relation": True, "columns": True})) == []
    kept = node("snapshot", "snapshot", hard_deletes="new_record", dbt_valid_to_current="date'9999-12-31'")
    assert checked(kept) == []
    assert checked({**node("table"), "language": "python"}) == []

"""The facts of a node's build that decide whether it is reused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.silt.engine.kernel.log.builds import Build, Effect
from dbt.adapters.silt.materializations.reuse import (
    ProjectFacts,
    build_of,
    build_of_test,
    cannot_be_cloned,
    is_reusable,
    is_switched_off,
    source_target,
)

SERVERS = ProjectFacts({}, {}, spark="server").hash


def node(
    code: str = "select 1 as a", resource_type: str = "model", language: str = "sql", **config: Any
) -> dict[str, Any]:
    return {
        "unique_id": "model.shop.orders",
        "alias": "orders",
        "resource_type": resource_type,
        "language": language,
        "compiled_code": code,
        "config": {"materialized": "table", **config},
    }


def build(model: dict[str, Any], around: ProjectFacts | None = None, checksum: str | None = None) -> Build:
    return build_of(model, checksum, around or ProjectFacts({}, {}), 0)


@pytest.mark.parametrize(
    "same",
    [
        node("-- a comment\nselect   1 as a"),
        node(tags=["nightly"], meta={"owner": "me"}, reuse="unchanged", grants={"select": ["you"]}, full_refresh=False),
        node(persist_docs={"relation": True}, user_metadata="note", group="finance"),
    ],
)
def test_configs_that_determine_no_row_do_not_change_the_code(same: dict[str, Any]) -> None:
    assert build(same).code == build(node()).code


@pytest.mark.parametrize(
    "other",
    [
        node("select 1 as A"),
        node("select '1  ' as a"),
        node(partition_by=["a"]),
        node(tblproperties={"a": "b"}),
        node(materialized="incremental"),
        {**node(), "columns": {"a": {"data_type": "bigint"}}},
        {**node(), "constraints": [{"type": "check"}]},
        node(**{"pre-hook": ["set x = 1"]}),  # type: ignore[arg-type]
    ],
)
def test_code_and_configs_that_determine_rows_change_the_code(other: dict[str, Any]) -> None:
    assert build(other).code != build(node()).code


def test_the_file_of_a_seed_is_its_code() -> None:
    seed = node("", "seed", materialized="seed")
    assert build(seed, checksum="1").code != build(seed, checksum="2").code


@pytest.mark.parametrize(
    "around",
    [
        ProjectFacts({"spark.sql.ansi.enabled": False}, {}),
        ProjectFacts({"spark.sql.session.timeZone": "Asia/Tokyo"}, {}),
        ProjectFacts({"spark.comet.enabled": "true"}, {}),
        ProjectFacts({}, {"shop.silt__create_table_as": "..."}),
        ProjectFacts({}, {}, spark="('sc://server:15002', '4.1.0')"),
        ProjectFacts({}, {}, schema=("silt", "main")),
    ],
)
def test_settings_and_macros_change_the_environment(around: ProjectFacts) -> None:
    assert build(node(), around).environment != build(node()).environment


@pytest.mark.parametrize("name", ["TZ", "SPARK_ANSI_SQL_MODE", "PYSPARK_SUBMIT_ARGS", "SPARK_HOME"])
def test_variables_that_configure_spark_change_the_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = build(node()).environment
    monkeypatch.setenv(name, "other")
    assert build(node()).environment != before
    assert build(node(), ProjectFacts({}, {}, spark="server")).environment == SERVERS


def test_the_defaults_of_this_machines_spark_change_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    before = build(node()).environment
    (tmp_path / "spark-defaults.conf").write_text("spark.sql.ansi.enabled false")
    assert build(node()).environment != before


def test_the_expressions_of_a_snapshot_are_part_of_its_code() -> None:
    model = node("select * from raw", "snapshot", materialized="snapshot", unique_key=["a", "uuid()"])
    assert build(model).text == "select * from raw\n, a\n, uuid()"


@pytest.mark.parametrize(
    ("model", "effect"),
    [
        (node(), Effect.REPLACES),
        (node("", "seed", materialized="seed"), Effect.REPLACES),
        (node(materialized="incremental"), Effect.ADDS),
        (node(materialized="incremental", incremental_strategy="append", unique_key="a"), Effect.ADDS),
        (node(materialized="incremental", unique_key="a"), Effect.REPEATS),
        (node(materialized="incremental", unique_key="a", incremental_predicates=["a > 1"]), Effect.ADDS),
        (node(materialized="incremental", incremental_strategy="insert_overwrite"), Effect.REPEATS),
        (
            node(materialized="incremental", incremental_strategy="replace_where", incremental_predicates="a > 1"),
            Effect.REPEATS,
        ),
        (node(materialized="incremental", incremental_strategy="changed_keys", unique_key="id"), Effect.REPEATS),
        (node("select * from raw", "snapshot", materialized="snapshot"), Effect.KEEPS),
        (node("select * from main.orders", "snapshot", materialized="snapshot"), Effect.ADDS),
    ],
)
def test_the_effect_of_a_second_build_follows_from_the_materialization(model: dict[str, Any], effect: Effect) -> None:
    assert build(model).effect is effect


@pytest.mark.parametrize(
    ("model", "unknown"),
    [
        (node(), ()),
        (node(language="python"), ("it is a python model without `pure: true`",)),
        (node(language="python", pure=True), ()),
        (node(sql_header="set x = 1"), ("it has a sql_header",)),
        (node(materialized="incremental", incremental_strategy="microbatch"), ("it is built in batches",)),
        (node(materialized="incremental", incremental_strategy="changed_keys"), ()),
        (
            node(materialized="incremental", incremental_strategy="own"),
            ("its incremental strategy is the project's own",),
        ),
    ],
)
def test_nodes_whose_rows_cannot_be_known_have_a_reason(model: dict[str, Any], unknown: tuple[str, ...]) -> None:
    assert build(model).unknown == unknown


def test_a_project_that_replaces_a_strategy_has_its_own() -> None:
    around = ProjectFacts({}, {"shop.get_incremental_append_sql": "..."})
    assert build(node(materialized="incremental"), around).unknown == ("its incremental strategy is the project's own",)


def test_the_config_of_a_node_takes_precedence_over_the_profile() -> None:
    assert is_reusable(node(), "unchanged")
    assert is_reusable(node(reuse="unchanged"), None)
    assert not is_reusable(node(reuse="never"), "unchanged")
    assert not is_reusable(node(), None)


@pytest.mark.parametrize(
    "config",
    [
        *({"reuse": "always"}, {"reuse": True}, {"state": {"lag": 1}}, {"state": "on"}),
        *({"state": {"lag_tolerance": value}} for value in ("", "4", "h", "-1h", "4 h 5", "4 months", True, 4)),
        *({"state": {"require_fresh_data_from": "all"}}, {"state": {"execute_hooks_on_any_reuse": True}}),
    ],
)
def test_an_invalid_value_of_the_config_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(CompilationError, match=r"`(reuse|state)` cannot"):
        is_reusable(node(**config), None)


def test_the_variable_switches_reuse_off() -> None:
    assert is_switched_off({"silt_reuse": False}) and is_switched_off({"silt_reuse": "false"})
    assert not is_switched_off({}) and not is_switched_off({"silt_reuse": True})
    with pytest.raises(CompilationError, match="it is true or false"):
        is_switched_off({"silt_reuse": "no"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0s", 0),
        ("30 seconds", 30_000),
        ("45m", 2_700_000),
        ("4H", 14_400_000),
        ("1 day", 86_400_000),
        ("2w", 1_209_600_000),
    ],
)
def test_a_tolerance_is_a_number_and_a_unit(text: str, expected: int) -> None:
    model = node(state={"lag_tolerance": text})
    assert not is_reusable(model, None)
    assert build(model).tolerance_ms == expected


HERE, THERE = ProjectFacts({}, {}, schema=("silt", "dev")), ProjectFacts({}, {}, schema=("silt", "main"))


def test_names_of_schemas_do_not_count_in_the_portable_hash() -> None:
    mine = build(node(schema="marts", database="a", alias="x"), HERE)
    theirs = build(node(schema="main_marts", alias="orders"), THERE)
    assert mine.portable == theirs.portable and mine.code != theirs.code
    assert mine.query == "select 1 as a" and build(node(tblproperties={"a": "b"}), HERE).portable != mine.portable
    assert build(node(), ProjectFacts({"spark.sql.ansi.enabled": "false"}, {})).portable != mine.portable


def test_a_seed_is_compared_by_its_file() -> None:
    seed = node("", "seed", materialized="seed")
    assert build(seed, HERE, "1").portable == build(seed, THERE, "1").portable != build(seed, THERE, "2").portable
    assert build(seed).query is None


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (node(), None),
        (node("", "seed", materialized="seed"), None),
        (node(materialized="incremental", unique_key="a"), "only tables and seeds are cloned"),
        (node("select * from raw", "snapshot", materialized="snapshot"), "only tables and seeds are cloned"),
        (node(language="python", pure=True), "python models are not compared"),
    ],
)
def test_nodes_that_are_never_cloned_have_a_reason(model: dict[str, Any], why: str | None) -> None:
    found = cannot_be_cloned(build(model))
    assert found is None if why is None else str(found).startswith(why)
    assert bool(build(model).portable) is (why is None)


def test_another_target_implies_reuse_and_is_named_by_one_key() -> None:
    assert source_target(node(reuse={"from": "prod"})) == "prod" and is_reusable(node(reuse={"from": "prod"}), None)
    assert source_target(node(reuse="unchanged")) is None
    for bad in ({}, {"from": ""}, {"from": None}, {"from": 1}, {"from": "prod", "to": "dev"}, {"target": "prod"}):
        with pytest.raises(CompilationError, match="it has one key, `from`"):
            is_reusable(node(reuse=bad), None)


def test_a_data_test_has_no_state() -> None:
    with pytest.raises(CompilationError, match="`state` has no meaning for a data test"):
        is_reusable(node(resource_type="test", reuse="unchanged", state={"lag_tolerance": "1h"}), None)


def test_a_data_test_is_known_by_its_id_and_schema_and_by_its_query() -> None:
    test = {**node(resource_type="test"), "schema": "main"}
    one = build_of_test(test, ["select 1"], HERE, 5)
    assert one.owner == "model.shop.orders in main" and one.at_ms == 5 and one.unknown == ()
    assert build_of_test(test, ["select   1 -- one"], HERE, 5).code == one.code
    assert build_of_test(test, ["select 2"], HERE, 5).code != one.code
    headed = build_of_test(
        {**node(resource_type="test", sql_header="set x = 1"), "schema": "main"}, ["select 1"], HERE, 5
    )
    assert headed.unknown == ("it has a sql_header",)

"""A source's `external_location` becomes SQL that reads its files, or an error with the reason."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.silt.materializations.external.sources import external_of


def source(meta: dict[str, Any], **given: Any) -> Any:
    columns = {name: SimpleNamespace(name=name, data_type=kind) for name, kind in given.pop("columns", {}).items()}
    fields = {
        "name": "orders",
        "identifier": "orders_v2",
        "schema": "landing",
        "database": "silt",
        "source_name": "raw",
        "source_meta": {},
        "config": SimpleNamespace(extra={}, meta={}),
    }
    return SimpleNamespace(**{**fields, **given}, meta=meta, columns=columns)


@pytest.mark.parametrize(
    ("meta", "text"),
    [
        ({"external_location": "in/{name}.parquet"}, "read_files('/p/in/orders.parquet', format => 'parquet'"),
        ({"external_location": "/x/{identifier}/*.csv.gz"}, "read_files('/x/orders_v2/*.csv.gz', format => 'csv'"),
        ({"external_location": "/x/{a,b}.json"}, "read_files('/x/{a,b}.json', format => 'json'"),
        ({"external_location": "s3://b/{day}", "day": 7, "format": "orc"}, "read_files('s3://b/7', format => 'orc'"),
        ({"external_location": "/x/%(schema)s.txt", "formatter": "oldstyle"}, "read_files('/x/landing.txt', format =>"),
        ({"external_location": "/x/$schema.txt", "formatter": "template"}, "read_files('/x/landing.txt', format =>"),
        ({"external_location": "/it's.parquet"}, r"read_files('/it\'s.parquet', format => 'parquet'"),
        ({"external_location": "file:///x/`t`", "format": "delta"}, "delta.`/x/``t```"),
    ],
)
def test_the_placeholders_of_a_location_are_replaced_and_its_format_is_found(meta: dict[str, Any], text: str) -> None:
    found = external_of(source(meta), "/p")
    assert found is not None
    assert found.text.startswith(text)


def test_options_and_declared_types_are_part_of_the_sql() -> None:
    meta = {"external_location": "/x.csv", "options": {"sep": ";", "maxColumns": 9, "multi.line": True}}
    found = external_of(source(meta, columns={"id": "bigint", "a b": "string", "untyped": None}), "/p")
    assert found is not None
    assert found.text == (
        "read_files('/x.csv', format => 'csv', header => true, schemaHints => '`id` bigint, `a b` string', sep => ';', "
        "maxColumns => 9, `multi.line` => true /* source raw.orders */)"
    )
    plain = external_of(source({**meta, "options": {"HEADER": False, "schema": "id int"}}, columns={"id": "int"}), "/p")
    assert plain is not None
    assert plain.text == (
        "read_files('/x.csv', format => 'csv', HEADER => false, schema => 'id int' /* source raw.orders */)"
    )
    nameless = external_of(source({**meta, "options": {"header": False}}, columns={"id": "int", "b": "date"}), "/p")
    assert nameless is not None
    assert "header => false" in nameless.text
    assert "schema => '`id` int, `b` date'" in nameless.text


def test_names_of_types_are_translated_as_those_of_seeds() -> None:
    columns = {"a": "varchar", "b": "character varying(9)", "c": "int8", "d": "timestamp(6) without time zone"}
    found = external_of(source({"external_location": "/x.csv"}, columns=columns), "/p")
    assert found is not None
    assert "schemaHints => '`a` string, `b` varchar(9), `c` bigint, `d` timestamp_ntz'" in found.text


def test_declared_types_of_parquet_files_only_widen_the_types_in_the_files() -> None:
    columns = {"a": "varchar", "b": "numeric(13,2)", "c": "int8", "d": "boolean", "e": "double precision"}
    found = external_of(source({"external_location": "/x.parquet"}, columns=columns), "/p")
    assert found is not None
    assert found.text.startswith(
        "read_files('/x.parquet', format => 'parquet', widenTo => '`b` numeric(13,2), `c` bigint, `e` double' /*"
    )
    for options in ({"widenTo": "b decimal(20,2)"}, {"schemaHints": "b decimal(20,2)"}, {"schema": "b int"}):
        own = external_of(source({"external_location": "/x.parquet", "options": options}, columns=columns), "/p")
        assert own is not None
        assert "numeric(13,2)" not in own.text


@pytest.mark.parametrize(
    ("guessed", "options", "columns"),
    [
        (True, {}, {}),
        (True, {"header": False}, {"id": None}),
        (False, {}, {"id": "bigint", "untyped": None}),
        (False, {"inferSchema": False}, {}),
        (False, {"Schema": "id int"}, {}),
        (False, {"schemaHints": "id int"}, {}),
    ],
)
def test_types_of_csv_columns_are_inferred_if_no_type_is_declared(
    guessed: bool, options: dict[str, Any], columns: dict[str, Any]
) -> None:
    found = external_of(source({"external_location": "/x.csv", "options": options}, columns=columns), "/p")
    assert found is not None
    assert found.types_are_guessed == guessed
    others = [external_of(source({"external_location": f"/x.{ending}"}), "/p") for ending in ("json", "parquet")]
    assert [each.types_are_guessed for each in others if each is not None] == [False, False]


def test_options_of_a_source_apply_to_tables_whose_format_has_them() -> None:
    shared = {"options": {"sep": ";", "mergeSchema": True, "spe": ";"}}
    given = source({"external_location": "/x.parquet"}, source_meta=shared)
    found = external_of(given, "/p")
    assert found is not None
    assert found.text == (
        "read_files('/x.parquet', format => 'parquet', mergeSchema => true, spe => ';' /* source raw.orders */)"
    )
    of_the_table = external_of(source({"external_location": "/x.parquet", "options": {"sep": ";"}}), "/p")
    assert of_the_table is not None
    assert "sep => ';'" in of_the_table.text


def test_table_settings_take_precedence_over_the_sources_and_config_over_meta() -> None:
    config = SimpleNamespace(extra={"format": "json"}, meta={"external_location": "/of/config"})
    given = source({"external_location": "/of/table"}, source_meta={"format": "orc"}, config=config)
    found = external_of(given, "/p")
    assert found is not None
    assert (found.location, found.format) == ("/of/config", "json")
    assert external_of(source({}), "/p") is None


@pytest.mark.parametrize(
    ("meta", "reason"),
    [
        ({"external_location": "/x/{day}.csv"}, "cannot be filled in"),
        ({"external_location": "/x/orders"}, "set `format`"),
        ({"external_location": "read_parquet('/x/*.parquet')"}, "give only the path"),
        ({"external_location": "/x.csv", "options": "sep=;"}, "`options` must map option names"),
        ({"external_location": "/x.csv", "formatter": "jinja"}, "newstyle, oldstyle or template"),
    ],
)
def test_an_invalid_location_is_refused_with_the_name_of_the_source(meta: dict[str, Any], reason: str) -> None:
    with pytest.raises(DbtRuntimeError, match=reason) as raised:
        external_of(source(meta), "/p")
    assert "source raw.orders" in str(raised.value)

"""Views and functions are read back as written; an unreadable document is reported."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.silt.engine.catalog.names.documents import (
    Function,
    View,
    parse_function,
    parse_view,
    serialize_function,
    serialize_view,
)
from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import TableDamagedError, UnsupportedFeatureError
from dbt.adapters.silt.engine.sql.ast import Parameter, ViewColumn

NAME = RelationName("silt", "main", "daily")
texts = st.text(alphabet=st.characters(exclude_categories=("Cs",)))  # type: ignore[arg-type]
maybe = st.none() | texts
fields = st.lists(st.tuples(st.lists(texts, min_size=1).map(tuple), texts)).map(tuple)

views = st.builds(
    View,
    name=st.just(NAME),
    text=texts,
    columns=st.lists(st.builds(ViewColumn, name=texts, comment=maybe, fields=fields)).map(tuple),
    comment=maybe,
    properties=st.dictionaries(texts, texts),
    current_database=maybe,
    current_schema=maybe,
    created_at=st.none() | st.integers(0, 2**53),
)
functions = st.builds(
    Function,
    name=st.just(NAME),
    parameters=st.lists(st.builds(Parameter, name=texts, type=texts, default=maybe)).map(tuple),
    body=texts,
    returns=maybe,
    comment=maybe,
    properties=st.dictionaries(texts, texts),
)


@given(views)
def test_a_view_is_read_back_as_written(view: View) -> None:
    assert parse_view(serialize_view(view), NAME) == view


@given(functions)
def test_a_function_is_read_back_as_written(function: Function) -> None:
    assert parse_function(serialize_function(function), NAME) == function


@given(views)
def test_the_names_of_the_querys_columns_are_read_back(view: View) -> None:
    named = replace(view, query_columns=tuple(f"{column.name}?" for column in view.columns))
    assert parse_view(serialize_view(named), NAME) == named


def test_a_view_whose_query_has_another_number_of_columns_is_damaged() -> None:
    view = View(NAME, "select 1 as id", (ViewColumn("id"),), query_columns=("id", "kind"))
    with pytest.raises(TableDamagedError, match="1 columns for the 2 columns of its query"):
        parse_view(serialize_view(view), NAME)


def test_a_view_has_the_name_of_its_file() -> None:
    other = RelationName("silt", "main", "renamed")
    assert parse_view(serialize_view(View(NAME, "select 1")), other) == View(other, "select 1")


@pytest.mark.parametrize("data", [b"", b'{"format": 1, "ki', b"[]", b"null", b'{"format": 1, "kind": "view"}', b"\xff"])
def test_a_truncated_or_foreign_document_is_an_error_that_names_the_view_and_the_remedy(data: bytes) -> None:
    with pytest.raises(TableDamagedError, match=r"silt\.main\.daily: .*create or replace view"):
        parse_view(data, NAME)


def test_a_document_of_a_later_format_is_refused() -> None:
    data = json.dumps({"format": 2, "kind": "view", "text": "select 1", "columns": []}).encode()
    with pytest.raises(UnsupportedFeatureError, match="later version of dbt-silt"):
        parse_view(data, NAME)


def test_the_document_of_a_function_is_not_read_as_a_view() -> None:
    with pytest.raises(UnsupportedFeatureError):
        parse_view(serialize_function(Function(NAME, (), "1")), NAME)

"""Relations: three parts in backquotes, compared without case."""

from __future__ import annotations

import pytest
from dbt.adapters.contracts.relation import RelationType

from dbt.adapters.silt.engine.catalog.names.relation_names import RelationName
from dbt.adapters.silt.engine.kernel.errors import InvalidNameError
from dbt.adapters.silt.engine.kernel.identifiers import quote
from dbt.adapters.silt.relation import SiltRelation

ORDERS = SiltRelation.create("silt", "Main", "Orders", type=RelationType.Table)


def test_all_three_parts_are_written_in_backquotes_and_lower_case() -> None:
    assert ORDERS.render() == str(ORDERS) == "`silt`.`main`.`orders`"


def test_a_schema_is_written_with_its_database() -> None:
    assert ORDERS.without_identifier().render() == "`silt`.`main`"


def test_the_information_schema_is_qualified_with_the_database() -> None:
    assert str(ORDERS.information_schema()) == "`silt`.INFORMATION_SCHEMA"
    assert str(ORDERS.information_schema("tables")) == "`silt`.INFORMATION_SCHEMA.tables"


def test_a_backquote_in_a_name_is_doubled() -> None:
    assert quote("a`b") == "`a``b`"


def test_a_temporary_view_is_written_as_its_name_only() -> None:
    view = SiltRelation.create(identifier="orders__dbt_tmp", type=RelationType.View)
    assert view.is_temporary
    assert view.render() == "`orders__dbt_tmp`"


@pytest.mark.parametrize(
    "relation",
    [
        ORDERS.incorporate(path={"schema": None, "identifier": "tmp"}),
        ORDERS.incorporate(path={"database": "", "schema": "", "identifier": "tmp"}),
        ORDERS.replace_path(schema=None, identifier="tmp"),
        ORDERS.incorporate(path={"identifier": "tmp"}).include(schema=False),
        ORDERS.incorporate(path={"identifier": "tmp"}).include(database=False, schema=False),
        SiltRelation.create("silt", identifier="tmp"),
    ],
)
def test_a_relation_without_a_schema_is_written_as_its_identifier_only(relation: SiltRelation) -> None:
    assert relation.render() == str(relation) == "`tmp`"
    assert relation.is_temporary


def test_an_excluded_or_empty_part_is_not_written() -> None:
    assert ORDERS.include(database=False).render() == "`main`.`orders`"
    assert ORDERS.include(identifier=False).render() == "`silt`.`main`"
    assert ORDERS.include(schema=False, identifier=False).render() == "`silt`"
    assert SiltRelation.create("", "main", "orders").render() == "`main`.`orders`"
    assert SiltRelation.create().render() == ""
    assert not any(each.is_temporary for each in (ORDERS, ORDERS.include(database=False), ORDERS.without_identifier()))  # type: ignore[attr-defined]


def test_the_schema_of_a_source_on_files_is_written_by_its_name() -> None:
    files = ORDERS.replace(external="parquet.`/landing`", external_location="/landing")
    assert files.render() == files.include(database=False).render() == "parquet.`/landing`"
    assert files.without_identifier().render() == "`silt`.`main`"


@pytest.mark.parametrize(("schema", "identifier"), [("main", "orders"), ("MAIN", "ORDERS"), ("Main", "Orders")])
def test_names_match_in_any_case(schema: str, identifier: str) -> None:
    assert ORDERS.matches("SILT", schema, identifier)


def test_names_match_in_composed_and_decomposed_unicode() -> None:
    composed, apart = "umsätze", "Umsa\u0308tze"
    assert SiltRelation.create("silt", "main", apart).matches("silt", "main", composed)
    assert SiltRelation.create("silt", "main", composed).matches("silt", "main", apart)


def test_another_name_does_not_match() -> None:
    assert not ORDERS.matches("silt", "main", "order")


def test_a_missing_database_is_that_of_the_profile() -> None:
    assert SiltRelation.create(None, "Main", "Orders").relation_name("silt") == RelationName("silt", "main", "orders")


def test_a_name_that_could_leave_the_warehouse_is_refused() -> None:
    with pytest.raises(InvalidNameError):
        SiltRelation.create("silt", "main", "../orders").relation_name("silt")


def test_an_empty_run_reads_no_row_of_a_ref() -> None:
    limited = SiltRelation.create("silt", "main", "orders", limit=0)
    assert str(limited) == "(select * from `silt`.`main`.`orders` where false limit 0)"

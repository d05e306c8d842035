"""The tables that a text names, their positions, and the text after they are replaced."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given

from dbt.adapters.silt.engine.kernel.errors import SiltError, StatementSyntaxError, UnsupportedStatementError
from dbt.adapters.silt.engine.sql.query.references import Reference, Replacement, rewrite, scanned, table_references
from tests.unit.engine.sql.sql_fixtures import pairs
from tests.unit.engine.sql.sql_soup import openings, soups


def rewritten(sql: str) -> str:
    """Returns the text with each reference replaced by its name in braces, with its time travel and options."""
    return rewrite(scanned(sql), {each: Replacement(_mark(each), _full(each)) for each in table_references(sql)})


def _mark(reference: Reference) -> str:
    asked = [f"v{reference.version}"] if reference.version is not None else []
    asked += [f"at {reference.timestamp}"] if reference.timestamp is not None else []
    asked += [f"with {reference.options}"] if reference.options is not None else []
    return "{" + " ".join((".".join(reference.parts), *asked)) + "}"


def _full(reference: Reference) -> tuple[str, ...]:
    return reference.parts if len(reference.parts) != 2 or reference.is_path else ("silt", *reference.parts)


@pytest.mark.parametrize(("sql", "expected"), pairs("references"))
def test_references_are_found_and_replaced(sql: str, expected: str) -> None:
    assert rewritten(sql) == expected


def test_a_reference_has_the_positions_of_its_name_and_of_a_possible_alias() -> None:
    text = "select * from s.t version as of 3 tablesample (5 rows) join `u` x"
    first, second = table_references(text)
    assert text[first.start : first.end] == "s.t version as of 3"
    assert text[: first.alias_at].endswith("(5 rows)")
    assert (first.parts, first.alias, first.version) == (("s", "t"), None, "3")
    assert text[second.start : second.end] == "`u`"
    assert (second.parts, second.alias) == (("u",), "x")


@pytest.mark.parametrize(
    ("name", "is_path"),
    [("delta.`/a/b`", True), ("DELTA.`s3://a/b`", True), ("delta.t", False), ("parquet.`/a`", False), ("`/a`", False)],
)
def test_a_reference_by_path_is_delta_dot_a_folder(name: str, is_path: bool) -> None:
    (reference,) = table_references(f"select * from {name}")
    assert reference.is_path is is_path


def test_a_call_of_table_changes_references_the_table_in_its_string() -> None:
    text = "select * from table_changes('s.`my t`', 1 + 1, current_timestamp()) as c join u on c.id = u.id"
    first, second = table_references(text)
    assert text[first.start : first.end] == "table_changes('s.`my t`', 1 + 1, current_timestamp())"
    assert (first.parts, first.alias, first.changes) == (("s", "my t"), "c", ("1 + 1", "current_timestamp()"))
    assert (second.parts, second.changes) == (("u",), None)
    (by_path,) = table_references("select * from Table_Changes_By_Path(\"/a/b c\", '2024-01-01')")
    assert (by_path.is_path, by_path.parts[1], by_path.changes) == (True, "/a/b c", ("'2024-01-01'",))
    short = "select table_changes.id, s.t.id from table_changes('s.t', 0), x"
    (call, _) = table_references(short)
    assert rewrite(scanned(short), {call: Replacement("v", ("silt", "s", "t"))}) == (
        "select table_changes.id, `t`.id from v AS `t`, x"
    )


@pytest.mark.parametrize("arguments", ["", "'s.t'", "s.t, 1", "'s.t', 1, 2, 3", "'s.', 1", "'s t', 1", "'s.t', "])
def test_an_invalid_call_of_table_changes_is_refused(arguments: str) -> None:
    with pytest.raises(StatementSyntaxError):
        table_references(f"select * from table_changes({arguments})")


def test_identifier_in_place_of_a_table_is_refused() -> None:
    with pytest.raises(UnsupportedStatementError):
        table_references("select * from a join identifier('b' || 'c') on true")


def test_a_table_name_in_double_quotes_is_refused() -> None:
    with pytest.raises(StatementSyntaxError):
        table_references('select * from "t"')


def test_columns_of_the_outer_table_get_its_new_name() -> None:
    text = "main.orders.id in (select id from s where s.day = orders.day and silt.main.orders.x = y) and orders.z = 1"
    (source,) = table_references(text)
    outer = {("silt", "main", "orders"): "DBT_INTERNAL_DEST"}
    assert rewrite(scanned(text), {source: Replacement("`s@v1`")}, outer) == (  # type: ignore[arg-type]
        "`DBT_INTERNAL_DEST`.id in (select id from `s@v1` AS `s` where s.day = `DBT_INTERNAL_DEST`.day "
        "and `DBT_INTERNAL_DEST`.x = y) and `DBT_INTERNAL_DEST`.z = 1"
    )


def test_an_inner_relation_of_the_same_name_hides_the_outer_table() -> None:
    text = "exists (select 1 from other orders where orders.id = 1)"
    assert rewrite(scanned(text), {}, {("silt", "main", "orders"): "target"}) == text


def test_unreplaced_references_are_unchanged() -> None:
    text = "select a.t.x, b.t.x from a.t, b.t"
    first, _ = table_references(text)
    assert rewrite(scanned(text), {first: Replacement("R")}) == "select `a.t`.x, b.t.x from R AS `a.t`, b.t"


def test_a_query_nested_too_deeply_is_refused() -> None:
    with pytest.raises(UnsupportedStatementError):
        table_references("select " + "(" * 2000 + "1" + ")" * 2000 + " from t")


@given(soups() | openings())
def test_the_span_of_a_reference_contains_its_name(text: str) -> None:
    try:
        references = table_references(text)
    except SiltError:
        return
    for reference in references:
        span = text[reference.start : reference.end]
        assert all(part.replace("`", "``") in span for part in reference.parts)
        assert reference.alias_at is None or reference.alias_at >= reference.end


@given(soups() | openings())
def test_references_are_ordered_and_do_not_overlap(text: str) -> None:
    try:
        references = table_references(text)
    except SiltError:
        return
    spans = [(reference.start, reference.end) for reference in references]
    assert spans == sorted(spans)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(spans))


@given(soups() | openings())
def test_replacing_nothing_changes_nothing(text: str) -> None:
    try:
        assert rewrite(scanned(text), {}) == text
    except SiltError:
        return

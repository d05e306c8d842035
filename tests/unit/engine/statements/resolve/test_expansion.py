"""Editing an expanded query does not change the meaning of its remaining references."""

from __future__ import annotations

from dbt.adapters.silt.engine.sql.query.references import scanned
from dbt.adapters.silt.engine.sql.spans import Edit
from dbt.adapters.silt.engine.statements.resolve.expansion import ExpandedQuery, SqlFragment, VirtualRelation
from dbt.adapters.silt.engine.statements.resolve.information_schema import Listing

TEXT = "select (select count(*) from b) as n, a.x, o.x from a join a as o on a.x = o.x join b on f(1) = 1"


def expanded(sql: str) -> ExpandedQuery:
    """Expands the text so that each reference has a separate child, numbered in the order of the text."""
    references = scanned(sql).scan.references
    children = {each: VirtualRelation(Listing(str(n), each.parts[0])) for n, each in enumerate(references)}
    return ExpandedQuery(SqlFragment(sql), children, {}, True)


def test_remaining_references_keep_their_children() -> None:
    query = expanded(TEXT)
    start, end = TEXT.index("select count"), TEXT.index(") as n")
    edited = query.with_edits([Edit(start, end, "12345678901234567890123456789L")])
    assert edited.text.sql == TEXT.replace("select count(*) from b", "12345678901234567890123456789L")
    left = {each.start: child for each, child in edited.children.items()}
    shift = len(edited.text.sql) - len(TEXT)
    wanted = {each.start + shift: child for each, child in query.children.items() if each.start > end}
    assert left == wanted
    assert len(left) == 3
    assert list(edited.children) == list(edited.text.text.scan.references)


def test_an_edit_that_replaces_all_references_leaves_no_children() -> None:
    query = expanded("select count(*) from b")
    assert query.with_edits([Edit(0, 22, "select 1L")]).children == {}

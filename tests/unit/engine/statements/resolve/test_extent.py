"""The size of a statement with expanded views and functions is limited; the error names the view."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.statements.resolve.expansion import DEEPEST, MOST_CHARACTERS, MOST_TEXTS, Extent

VIEW = ("silt.main.outer", "silt.main.inner")


def test_an_extent_counts_each_nested_text_and_the_greatest_depth() -> None:
    inner = Extent.of("select 1").around([Extent.of("a")])
    assert Extent.of("ab").around([inner, inner, Extent.of("abc")]) == Extent(3, 6, 23)


@pytest.mark.parametrize("extent", [Extent(DEEPEST - 1, 1, 1), Extent(1, MOST_TEXTS, 1), Extent(1, 2, MOST_CHARACTERS)])
def test_an_extent_at_the_limit_is_allowed(extent: Extent) -> None:
    extent.check(VIEW)


@pytest.mark.parametrize(
    ("extent", "view"),
    [
        (Extent(DEEPEST, 1, 1), "outer"),
        (Extent(1, MOST_TEXTS + 1, 1), "inner"),
        (Extent(1, 2, MOST_CHARACTERS + 1), "inner"),
    ],
)
def test_an_extent_beyond_the_limit_is_refused_with_the_name_of_the_view(extent: Extent, view: str) -> None:
    with pytest.raises(UnsupportedStatementError) as refused:
        extent.check(VIEW)
    assert refused.value.table == f"silt.main.{view}"


def test_a_long_text_without_views_is_allowed() -> None:
    Extent(1, 1, 2 * MOST_CHARACTERS).check(())

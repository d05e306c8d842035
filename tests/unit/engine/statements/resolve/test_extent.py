"""A statement with its views and functions written out has a limit, which the refusal says with the view's name."""

from __future__ import annotations

import pytest

from dbt.adapters.silt.engine.kernel.errors import UnsupportedStatementError
from dbt.adapters.silt.engine.statements.resolve.extent import DEEPEST, MOST_CHARACTERS, MOST_TEXTS, Extent

VIEW = ("silt.main.outer", "silt.main.inner")


def test_a_text_counts_each_text_in_it_and_the_deepest() -> None:
    inner = Extent.of("select 1").around([Extent.of("a")])
    assert Extent.of("ab").around([inner, inner, Extent.of("abc")]) == Extent(3, 6, 23)


@pytest.mark.parametrize("extent", [Extent(DEEPEST - 1, 1, 1), Extent(1, MOST_TEXTS, 1), Extent(1, 2, MOST_CHARACTERS)])
def test_what_is_at_the_limit_is_allowed(extent: Extent) -> None:
    extent.check(VIEW)


@pytest.mark.parametrize(
    ("extent", "view"),
    [
        (Extent(DEEPEST, 1, 1), "outer"),
        (Extent(1, MOST_TEXTS + 1, 1), "inner"),
        (Extent(1, 2, MOST_CHARACTERS + 1), "inner"),
    ],
)
def test_what_is_beyond_it_is_refused_by_the_name_of_the_view(extent: Extent, view: str) -> None:
    with pytest.raises(UnsupportedStatementError) as refused:
        extent.check(VIEW)
    assert refused.value.table == f"silt.main.{view}"


def test_a_long_text_without_views_is_left_to_spark() -> None:
    Extent(1, 1, 2 * MOST_CHARACTERS).check(())

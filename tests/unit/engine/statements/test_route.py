"""Requirements of a new kind of statement: an effect in `sql.ast`, and a row in `statements.route`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from dbt.adapters.silt.engine.kernel.errors import InternalError
from dbt.adapters.silt.engine.sql import ast
from dbt.adapters.silt.engine.sql.ast import Effect, OnObject, OnTable, Statement
from dbt.adapters.silt.engine.statements import route

NO_CONTEXT = cast(Any, None)


def kinds(above: type[Statement] = Statement) -> Iterator[type[Statement]]:
    """Returns the kinds that the parser creates: the classes of `ast` without subclasses."""
    for kind in above.__subclasses__():
        if kind.__module__ == ast.__name__:
            yield from kinds(kind) if kind.__subclasses__() else [kind]


def test_every_kind_of_statement_has_a_route_and_nothing_else_has_one() -> None:
    assert set(route._ROUTES) == set(kinds())


@pytest.mark.parametrize("kind", list(kinds()), ids=lambda kind: kind.__name__)
def test_every_kind_that_changes_a_table_names_it(kind: type[Statement]) -> None:
    assert kind.effect in (None, Effect.OTHER) or issubclass(kind, OnTable | OnObject)


def test_a_kind_without_an_effect_cannot_be_defined() -> None:
    with pytest.raises(TypeError, match="effect"):
        type("Forgetful", (Statement,), {})


def test_a_kind_without_a_route_is_an_error_that_names_it() -> None:
    class Unrouted(Statement, effect=None):
        pass

    with pytest.raises(InternalError, match="Unrouted"):
        route.route(Unrouted(text="unrouted"), NO_CONTEXT)

"""dbt-tests-adapter: dbt_show."""

from __future__ import annotations

from dbt.tests.adapter.dbt_show.test_dbt_show import (
    BaseShowDoesNotHandleDoubleLimit,
    BaseShowLimit,
    BaseShowSqlHeader,
)


class TestShowLimit(BaseShowLimit):
    pass


class TestShowSqlHeader(BaseShowSqlHeader):
    pass


class TestShowDoesNotHandleDoubleLimit(BaseShowDoesNotHandleDoubleLimit):
    """Deviates in the quotes of the message, which are Spark's."""

    DATABASE_ERROR_MESSAGE = "Syntax error at or near 'limit'"

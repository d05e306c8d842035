"""dbt-tests-adapter: dbt_show."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
from dbt.tests.adapter.dbt_show.test_dbt_show import BaseShowDoesNotHandleDoubleLimit, BaseShowLimit, BaseShowSqlHeader
from dbt.tests.util import run_dbt
from dbt_common.exceptions import DbtRuntimeError


@pytest.fixture(autouse=True)
def collect_threads() -> Iterator[None]:
    """Collects the threads that dbt leaves to the garbage collector after a failed `show`: their warning would end
    pytest.
    """
    yield
    gc.collect()


class TestShowLimit(BaseShowLimit):
    pass


class TestShowSqlHeader(BaseShowSqlHeader):
    pass


class TestShowDoesNotHandleDoubleLimit(BaseShowDoesNotHandleDoubleLimit):
    """Deviates in the quotes of the message, which are Spark's."""

    DATABASE_ERROR_MESSAGE = "Syntax error at or near 'limit'"


class TestShowOfPythonModels:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"in_python.py": "def model(dbt, session):\n    return session.range(3)\n"}

    @pytest.mark.usefixtures("unclosed_pool")
    def test_show_of_a_python_model_names_another_way_to_see_the_rows(self, project: Any) -> None:
        with pytest.raises(DbtRuntimeError, match=r"in_python is a Python model: run it, then show its table"):
            run_dbt(["show", "--select", "in_python"])

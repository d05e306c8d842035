"""The examples in the kernel's docstrings."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from dbt.adapters.silt.engine.kernel.log import log
from dbt.adapters.silt.engine.kernel.storage import store
from dbt.adapters.silt.engine.kernel.transaction import commit


@pytest.mark.parametrize("module", [store, log, commit], ids=lambda module: module.__name__.rpartition(".")[2])
def test_examples_run(module: ModuleType) -> None:
    results = doctest.testmod(module)
    assert results.attempted > 0 and results.failed == 0

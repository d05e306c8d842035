"""Locates the tables of the corpus."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from tests.cloud.servers import ObjectServer
from tests.corpus.corpus import CORPUS, log_of


@pytest.fixture(scope="session")
def log_at(cloud: ObjectServer | None) -> Callable[[str], DeltaLog]:
    """Returns a function from the path of a table in the corpus to its log; with `--cloud`, of a copy in the server's
    bucket.
    """
    if cloud is None:
        return log_of

    def copied(path: str) -> DeltaLog:
        store = cloud.store(f"corpus/{path}")
        for file in (CORPUS / path).rglob("*"):
            if file.is_file():
                store.put(str(file.relative_to(CORPUS / path)), file.read_bytes())
        return DeltaLog(store, path)

    return copied

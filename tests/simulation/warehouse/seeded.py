"""Runs code so that a seed alone determines it: without threads of the engine and without garbage collection."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from dbt.adapters.silt.engine.catalog.objects import object_database
from dbt.adapters.silt.engine.kernel.files import deletion_vectors
from dbt.adapters.silt.engine.kernel.log import commit_file, history

_WITH_THREADS = (commit_file, deletion_vectors, history, object_database)


class OneAfterTheOther(Executor):
    """An executor without threads."""

    def __init__(self, max_workers: int) -> None:
        """Has the signature of ThreadPoolExecutor."""

    def map(self, fn: Callable[..., Any], *iterables: Iterable[Any], **options: Any) -> Iterator[Any]:
        return map(fn, *iterables)


@contextmanager
def seeded() -> Iterator[None]:
    """Disables threads, warnings, and garbage collection, which would depend on earlier seeds.

    A snapshot that is still alive saves reading the log.
    """
    gc.disable()
    logging.disable(logging.WARNING)
    try:
        with ExitStack() as stack:
            for module in _WITH_THREADS:
                stack.enter_context(mock.patch.object(module, "ThreadPoolExecutor", OneAfterTheOther))
            yield
    finally:
        logging.disable(logging.NOTSET)
        gc.enable()
        gc.collect(0)

"""Imports a module when it is first used: most dbt commands need neither Spark nor Arrow.

    if TYPE_CHECKING:
        from dbt.adapters.silt.engine.sql import split
    else:
        split = lazy_module("dbt.adapters.silt.engine.sql.tokens")

Type checkers see a normal import; a reader sees in addition that the import is expensive.
"""

from __future__ import annotations

import importlib
import threading
from types import ModuleType
from typing import Any

# All modules share a lock: with a lock for each module, a thread could see a half-initialized package while another
# thread imports it.
_importing = threading.RLock()


class LazyModule(ModuleType):
    """A module that is imported when an attribute is first read. Thread-safe."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "Imported when it is first used.")
        self._module: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        if self._module is None:
            with _importing:
                self._module = importlib.import_module(self.__name__)
        return getattr(self._module, name)


def lazy_module(name: str) -> Any:
    """Returns the module's stand-in.

    Args:
        name: the full name; the first use raises ImportError if the module is missing.
    """
    return LazyModule(name)

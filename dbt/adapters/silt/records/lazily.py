"""Loads modules when they are first used: most calls of `silt` need none of them and should answer in half a second."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any


def lazily(name: str) -> Any:
    """The module of that name; its code runs when one of its attributes is asked for.

    Raises:
        ModuleNotFoundError: there is no such module.
    """
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module

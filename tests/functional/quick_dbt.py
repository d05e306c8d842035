"""Speeds up work that each dbt command of the tests repeats, with the same result.

- dbt writes its artifacts with `json.dump`, which encodes them in Python; `json.dumps` creates the same text in C.
- Each adapter's behavior flags look for the module that declared them in a rendered stack, and pytest's is deep.
- dbt's fixture `adapter` parses the macros of dbt, dbt-spark and this package again for each class.
- A third of Python's time is the manifest, which a command writes twice, and which few tests read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from dbt.artifacts.schemas import base as artifacts
from dbt.config.runtime import RuntimeConfig
from dbt.contracts.graph.manifest import Manifest
from dbt.parser import manifest as parser
from dbt.parser.manifest import ManifestLoader
from dbt.task import runnable
from dbt_common import behavior_flags
from dbt_common.clients.system import write_file
from dbt_common.utils.encoding import JSONEncoder


def install(patch: pytest.MonkeyPatch) -> None:
    """Installs the first three replacements."""
    patch.setattr(artifacts, "write_json", write_json)
    patch.setattr(behavior_flags.BehaviorFlagRendered, "_default_source", staticmethod(calling_module))
    patch.setattr(ManifestLoader, "load_macros", lambda *given, **named: _BASE_MACROS(*given, **named))


def leave_out_the_manifest(patch: pytest.MonkeyPatch) -> None:
    """Does not write `manifest.json` in tests of a class that is not marked `manifest`."""
    for module in (parser, runnable):
        patch.setattr(module, "write_manifest", write_nothing)


def write_json(path: str, data: dict[str, Any]) -> bool:
    """Replaces dbt's function of this name."""
    return write_file(path, json.dumps(data, cls=JSONEncoder))


def write_nothing(manifest: Manifest, target_path: str) -> None:
    """Replaces dbt's `write_manifest`."""


def calling_module() -> str:
    """Returns the first module on the stack that is not the flags' own."""
    frame = sys._getframe()
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name not in (__name__, behavior_flags.__name__):
            return name
        frame = frame.f_back  # type: ignore[assignment]
    return "Unknown"


class BaseMacros:
    """Caches the macros of the packages that all projects of the tests have; a project's own macros are always read."""

    def __init__(self, load: Callable[..., Manifest]) -> None:
        self._load = load
        self._kept: Manifest | None = None

    def __call__(
        self, config: RuntimeConfig, macro_hook: Callable[[Manifest], Any], base_macros_only: bool = False
    ) -> Manifest:
        if not base_macros_only:
            return self._load(config, macro_hook, base_macros_only)
        if self._kept is None:
            self._kept = self._load(config, macro_hook, base_macros_only)
        return self._kept


_BASE_MACROS = BaseMacros(ManifestLoader.load_macros)

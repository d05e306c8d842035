"""Finds the files that a dbt project declares in its manifest."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from dbt_common.exceptions import DbtBaseException

from dbt.adapters.silt.dbt_seams.project_values import rendered
from dbt.adapters.silt.engine.catalog.names.locations import local_path
from dbt.adapters.silt.materializations.external.declared import DeclaredFiles, compiled_code
from dbt.adapters.silt.materializations.external.sources import external_of
from dbt.adapters.silt.materializations.external.target import resolve_location


def declared_by(manifest: Any, config: Any) -> DeclaredFiles:
    """Returns the files that the project of dbt's manifest declares.

    Args:
        config: dbt's configuration of the project and its profile.
    """
    compiled = partial(_compiled, manifest, Path(config.project_target_path))
    return DeclaredFiles(lambda: _locations(manifest, config), lambda: _codes(manifest), compiled)


def _locations(manifest: Any, config: Any) -> Iterator[str]:
    """Yields the configured locations; skips a source or model with an invalid configuration."""
    for source in getattr(manifest, "sources", {}).values():
        with contextlib.suppress(DbtBaseException):
            files = external_of(source, config.project_root)
            if files is not None:
                yield local_path(files.location) if files.format == "delta" else files.location
    for node in getattr(manifest, "nodes", {}).values():
        if node.config.materialized == "external":
            with contextlib.suppress(DbtBaseException):
                location = rendered(str(node.config.get("location") or ""), config)
                yield resolve_location(location, config.project_root)


def _codes(manifest: Any) -> Iterator[str]:
    """Yields the code of the manifest's nodes, with its Jinja."""
    yield from (str(getattr(node, "raw_code", "")) for node in getattr(manifest, "nodes", {}).values())


def _compiled(manifest: Any, target: Path) -> Iterator[str]:
    """Yields the code of the manifest's nodes as this command, or else the last command, has compiled it."""
    for node in getattr(manifest, "nodes", {}).values():
        yield compiled_code(target, vars(node))

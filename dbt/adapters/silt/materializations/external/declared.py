"""The files that a project declares: files of its sources, and files that its `external` models write.

The views of the project may read them; a stored view of another origin may not read any other files.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

from dbt_common.exceptions import DbtBaseException

from dbt.adapters.silt.engine.kernel.errors import SiltError
from dbt.adapters.silt.engine.sql.query.references import table_references
from dbt.adapters.silt.engine.sql.query.table_functions import named_files
from dbt.adapters.silt.materializations.external.target import resolve_location

_BY_FORMAT: Final = re.compile(r"\b\w+\s*\.\s*`((?:[^`]|``)+)`")
_JINJA: Final = re.compile(r"\{[{%].*?[%}]\}", re.DOTALL)
_STRING: Final = re.compile(r"""(['"])(.*?)\1""", re.DOTALL)
_IN_A_FOLDER: Final = re.compile(r"[^/]/[^/]|^/[^/]")
"""A part of each string that is a path; `'/'` between parts of a path is none."""


@dataclass(frozen=True)
class DeclaredFiles(Container[str]):
    """The locations that a project declares, as its views spell them; computed at the first use.

    Attributes:
        find: returns the locations that sources and models configure.
        codes: returns the code of the project's nodes, with its Jinja: it declares the locations that it gives to
            `read_files` or to a format (``csv.`/data/x.csv` ``), and paths that are strings in Jinja.
        compiled: returns the code of the nodes as dbt has last compiled it, for paths that Jinja composes; read for
            the first location that nothing else declares.
    """

    find: Callable[[], Iterable[str]]
    codes: Callable[[], Iterable[str]] = tuple
    compiled: Callable[[], Iterable[str]] = tuple

    def __contains__(self, location: object) -> bool:
        return location in self._found or location in self._composed

    @cached_property
    def _found(self) -> frozenset[str]:
        return frozenset(self.find()).union(*map(_named, self.codes()))

    @cached_property
    def _composed(self) -> frozenset[str]:
        return frozenset[str]().union(*map(_named, self.compiled()))


def _named(code: str) -> Iterator[str]:
    """Yields the locations that the code of a node names."""
    yield from named_files(code)
    yield from (found[1].replace("``", "`") for found in _BY_FORMAT.finditer(code))
    for block in _JINJA.findall(code):
        yield from (found[2] for found in _STRING.finditer(block) if _IN_A_FOLDER.search(found[2]))


def compiled_code(target: Path, node: Mapping[str, Any]) -> str:
    """Returns the code of a node as this command, or else the last command, has compiled it; empty if neither has.

    Args:
        target: dbt's target folder, with compiled files of models and tests, but not of snapshots.
        node: the node as in `manifest.json`.
    """
    file, path = str(node.get("original_file_path")), str(node.get("path"))
    is_alone = os.path.basename(file) == os.path.basename(path)  # otherwise its file is a folder there
    written = target / "compiled" / str(node.get("package_name")) / file / ("" if is_alone else path)
    try:
        return str(node.get("compiled_code") or "") or written.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def of_artifact(path: Path, project_root: str) -> DeclaredFiles:
    """Returns the files that the `manifest.json` of dbt's last command declares; none if it cannot be read."""

    @cache
    def manifest() -> tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]]:
        try:
            found = json.loads(path.read_bytes())
            return tuple(found["sources"].values()), tuple(found["nodes"].values())
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return (), ()

    return DeclaredFiles(
        lambda: _locations(*manifest(), project_root),
        lambda: (str(each.get("raw_code") or "") for each in manifest()[1]),
        lambda: (compiled_code(path.parent, each) for each in manifest()[1]),
    )


def _locations(
    sources: Iterable[Mapping[str, Any]], nodes: Iterable[Mapping[str, Any]], project_root: str
) -> Iterator[str]:
    """Yields the locations that sources and `external` models configure."""
    for source in sources:
        with contextlib.suppress(SiltError):
            for reference in table_references(f"select * from {source.get('relation_name')}"):
                if reference.files is not None:
                    yield reference.files.path
                elif reference.is_path:
                    yield reference.parts[1]
    for config in (each.get("config") or {} for each in nodes):
        if config.get("materialized") == "external":
            with contextlib.suppress(DbtBaseException):
                yield resolve_location(str(config.get("location") or ""), project_root)

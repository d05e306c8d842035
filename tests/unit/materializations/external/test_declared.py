"""The files that a project declares are the same in dbt and without it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dbt.adapters.silt.materializations.external.declared import DeclaredFiles, of_artifact
from dbt.adapters.silt.materializations.external.project_files import declared_by


def node(kind: str, file: str, path: str, compiled: str | None = None) -> dict[str, Any]:
    named = {"resource_type": kind, "package_name": "shop", "original_file_path": file, "path": path}
    return {**named, "raw_code": "select 1", "config": {"materialized": kind}, "compiled_code": compiled}


def reading(path: str) -> str:
    return f"select * from read_files('{path}')"


NODES = {
    "compiled_model": node("model", "models/a.sql", "a.sql", reading("/in/a")),
    "compiled_snapshot": node("snapshot", "snapshots/b.sql", "b.sql", reading("/in/b")),
    "compiled_test": node("test", "models/m.yml", "c.sql", reading("/in/c")),
    "model_of_last_command": node("model", "models/deep/d.sql", "deep/d.sql"),
    "test_of_last_command": node("test", "models/m.yml", "e.sql"),
    "never_compiled": node("snapshot", "snapshots/f.sql", "f.sql"),
}
WRITTEN = {"models/deep/d.sql": reading("/in/d"), "models/m.yml/e.sql": reading("/in/e")}


@pytest.fixture(params=["in dbt", "without dbt"])
def declared(request: pytest.FixtureRequest, tmp_path: Path) -> DeclaredFiles:
    target = tmp_path / "target"
    for name, text in WRITTEN.items():
        file = target / "compiled" / "shop" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    if request.param == "without dbt":
        (target / "manifest.json").write_text(json.dumps({"sources": {}, "nodes": NODES}))
        return of_artifact(target / "manifest.json", str(tmp_path))
    nodes = {
        name: SimpleNamespace(**{**each, "config": SimpleNamespace(**each["config"])}) for name, each in NODES.items()
    }
    config = SimpleNamespace(project_target_path=str(target), project_root=str(tmp_path))
    return declared_by(SimpleNamespace(sources={}, nodes=nodes), config)


@pytest.mark.parametrize("path", ["/in/a", "/in/b", "/in/c", "/in/d", "/in/e"])
def test_a_path_that_jinja_composes_counts_in_each_kind_of_node(declared: DeclaredFiles, path: str) -> None:
    assert path in declared


def test_no_other_path_counts(declared: DeclaredFiles) -> None:
    assert "/in/f" not in declared and "/etc/passwd" not in declared

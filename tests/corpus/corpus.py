"""The tables that other engines wrote (`../shared/corpus` next to the checkout), and the refused ones among them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.silt.engine.kernel.errors import MissingLogVersionError, UnsupportedFeatureError
from dbt.adapters.silt.engine.kernel.log.log import DeltaLog
from dbt.adapters.silt.engine.kernel.storage.local_store import LocalStore

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
MANIFEST = CORPUS / "manifest.json"

REFUSED: dict[str, tuple[type[Exception], str]] = {
    "delta-rs-err-logs/table_c": (MissingLogVersionError, "00000000000000000012.json"),
    **{f"delta-rs-err-logs/table_{name}": (UnsupportedFeatureError, "catalogOwned") for name in "defhi"},
    "delta-rs/simple_table_features": (UnsupportedFeatureError, "reader version 5"),
}
"""Refused tables, and the text that the error must contain."""

needs_corpus = pytest.mark.skipif(not MANIFEST.exists(), reason=f"the corpus is not there: {CORPUS}")


def entries() -> list[Any]:
    """Returns the manifest's entry of each table, or no entry if the corpus is missing."""
    return list(json.loads(MANIFEST.read_text(encoding="utf-8"))["tables"]) if MANIFEST.exists() else []


def readable() -> list[Any]:
    """Returns the entries of the tables that are not refused."""
    return [entry for entry in entries() if entry["path"] not in REFUSED]


def log_of(path: str) -> DeltaLog:
    return DeltaLog(LocalStore(CORPUS / path), path)

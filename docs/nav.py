"""Builds the navigation of the site for mkdocs, with every page of each folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
SECTIONS: Mapping[str, str] = {
    "models": "Models",
    "running": "Running",
    "engine": "Engine",
    "moving": "Coming from",
    "reference": "Reference",
}
"""The folders in their order, with their titles."""

FIRST: Mapping[str, Sequence[str]] = {
    "models": (
        *(
            "index",
            "table",
            "view",
            "incremental",
            "changed-keys",
            "changes",
            "append",
            "merge",
            "delete-insert",
            "insert-overwrite",
        ),
        *("replace-where", "microbatch", "own-strategy", "snapshot", "seed", "python", "external", "function"),
        "audits",
        "unit-tests",
    ),
    "running": (
        "exactly-once",
        "reuse",
        "publishing",
        "held-runs",
        "branches",
        "after-publication",
        "orchestrators",
        "team",
        "growing-data",
        "upkeep",
        "object-stores",
        "clusters",
        "metastore",
        "object-store-requests",
        "scale",
        "fast",
        "accelerator",
        "keep-alive",
        "silt-dbt",
        "progress",
        "operations",
        "silt-command",
        "sql-shell",
        "report",
        "tools",
        "endpoint",
    ),
    "engine": ("python", "transactions", "enforced-keys", "arrow", "data-source", "other-engines"),
    "reference": ("profile", "configs", "errors", "statements", "table-properties", "table-features"),
}
"""The pages of a folder that come before the others."""


def on_config(config: Any) -> Any:
    """Sets the navigation in the configuration of mkdocs."""
    config.nav = nav()
    return config


def nav() -> list[Any]:
    """Returns all pages in order, each as a path or in a section: a title with paths."""
    sections = [{title: pages(folder)} for folder, title in SECTIONS.items() if pages(folder)]
    development = ["ARCHITECTURE.md", {"Decisions": pages("decisions")}]
    begin = ["getting-started.md", "tour.md", "glossary.md"]
    return [{"Overview": "index.md"}, *begin, *sections, {"Development": development}]


def pages(folder: str) -> list[str]:
    """Returns the pages of a folder: first the pages in FIRST, then the other pages by name."""
    first = FIRST.get(folder, ())
    found = sorted(
        (DOCS / folder).glob("*.md"),
        key=lambda page: (first.index(page.stem) if page.stem in first else len(first), page.stem),
    )
    return [page.relative_to(DOCS).as_posix() for page in found]

"""The fixture `store`: a database with two empty tables, in folders and in an object store."""

from __future__ import annotations

from tests.unit.engine.catalog.branches.test_branches import store

__all__ = ["store"]

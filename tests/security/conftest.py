"""Provides the engine tests' warehouses to these tests."""

from __future__ import annotations

from tests.unit.engine.conftest import house, place

__all__ = ["house", "place"]

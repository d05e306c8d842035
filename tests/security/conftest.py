"""Gives these tests the warehouses that the engine's tests have."""

from __future__ import annotations

from tests.unit.engine.conftest import house, place

__all__ = ["house", "place"]

"""Reads the flags and the selected nodes of the running dbt command."""

from __future__ import annotations

from typing import Any

from dbt.flags import get_flags

from dbt import selected_resources


def flags() -> Any:
    """Returns the flags of the command, each as an attribute."""
    return get_flags()


def selected_nodes() -> frozenset[str]:
    """Returns the ids of the nodes that the command has selected; empty before dbt selects them."""
    return frozenset(selected_resources.SELECTED_RESOURCES)

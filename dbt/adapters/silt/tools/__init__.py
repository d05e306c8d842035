"""Supports tools around dbt that look up the adapter's type."""

"""Gives tools around dbt what they look up by the adapter's type."""

"""Touches the parts of dbt that dbt does not promise to keep: each has a contract test in `tests/unit/dbt_seams`."""

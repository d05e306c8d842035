"""Serves `silt dbt ...` by forks of a background process (Warm dbt) that has imported dbt and this package."""

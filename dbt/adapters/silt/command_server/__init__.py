"""Answers `silt dbt ...` by forks of a process that stays, in which dbt and this package are imported."""

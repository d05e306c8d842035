"""Defines what dbt's macros may call on `adapter`: one mixin for each kind of caller."""

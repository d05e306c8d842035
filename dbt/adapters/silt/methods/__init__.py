"""Defines the methods of `adapter` that dbt's macros call: one mixin for each kind of caller."""

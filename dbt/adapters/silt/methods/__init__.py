"""Defines the methods of `adapter` that macros of dbt call: a mixin for each kind of caller."""

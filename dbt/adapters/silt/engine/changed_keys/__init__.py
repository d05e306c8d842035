"""Proves, from the plan that Spark resolved, that a query can be evaluated for single keys."""

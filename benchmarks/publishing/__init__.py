"""Compares changes that are published at one moment with changes that are visible one by one."""

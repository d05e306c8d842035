"""Runs DELETE, UPDATE and TRUNCATE, by rewriting files or by deletion vectors."""

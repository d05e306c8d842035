"""Audits: tests of the rows that a commit would make, judged before it is made."""

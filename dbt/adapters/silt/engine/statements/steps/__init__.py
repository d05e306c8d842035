"""The steps that statements share: find the table, refuse, skip, resolve, run, report, or hand on to Spark."""

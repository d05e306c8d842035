"""The steps of every statement on a table: find it, pass it on to Spark, refuse it, skip it, resolve it, run it."""

"""Times a long log and a table of many files, compared with delta-rs, without Spark."""

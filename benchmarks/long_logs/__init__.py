"""What a long log and a table of many files cost, beside delta-rs, without Spark."""

"""Times queries and statements on Spark alone and with an accelerator."""

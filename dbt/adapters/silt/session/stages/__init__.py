"""Reports the progress of a session's statements: polls an embedded Spark, or reads it from a Connect server."""

"""Says how far Spark is with what a session runs: asks an embedded Spark, and hears it from a Connect server."""

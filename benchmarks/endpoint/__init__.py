"""The cost of the endpoint beside the Spark behind it."""

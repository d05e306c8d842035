"""The Connect door: a proxy of Spark Connect that runs SQL and writes through the engine."""

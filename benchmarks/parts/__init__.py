"""Where the time of a small statement goes, measured from outside of the engine."""

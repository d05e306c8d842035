"""The parts of a small statement's time, measured from outside of the engine."""

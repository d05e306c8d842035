"""Runs the statements of `silt sql`, without Spark or by one in a process of its own, and draws what they give."""

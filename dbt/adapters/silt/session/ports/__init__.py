"""Protects the ports of a Spark on this machine against other users."""

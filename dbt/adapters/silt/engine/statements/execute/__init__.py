"""Calls the command of each kind of statement with its texts, and gives the answer."""

"""Carries out each kind of statement: its texts, its command and its answer."""

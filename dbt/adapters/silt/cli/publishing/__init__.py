"""Ends runs that are not published yet: publishes or drops their changes."""

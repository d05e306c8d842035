"""Publishes the changes of several tables at one moment: branches, documents, and their recovery."""

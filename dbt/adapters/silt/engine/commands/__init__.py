"""The verbs that need Spark, by room, and what they all share: target, settings, outcome and commit."""

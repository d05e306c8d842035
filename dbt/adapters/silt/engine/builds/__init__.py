"""The builds of tables: the facts that determine their rows, and the decision whether a table already holds them."""

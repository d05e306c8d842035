"""The grammar of statements, with a module for each family."""

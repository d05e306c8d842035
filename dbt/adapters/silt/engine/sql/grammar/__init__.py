"""The grammar of statements, one module for each family of them."""

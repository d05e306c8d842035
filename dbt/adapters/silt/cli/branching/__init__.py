"""The subcommands about named branches: creates, lists, compares, merges and deletes them."""

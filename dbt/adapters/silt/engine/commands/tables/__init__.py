"""Creates, clones, converts, alters and describes tables."""

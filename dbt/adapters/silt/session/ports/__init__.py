"""What a Spark of this machine answers to other processes."""

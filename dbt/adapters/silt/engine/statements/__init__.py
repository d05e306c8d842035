"""Routes a parsed statement to the function that runs it, and runs it again after a conflict."""

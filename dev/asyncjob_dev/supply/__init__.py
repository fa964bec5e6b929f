"""What a release is made of, and whether any of it is known to be unsafe."""

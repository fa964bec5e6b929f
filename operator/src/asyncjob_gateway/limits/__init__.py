"""What a request may take: bytes, depth, time, and how many at once."""

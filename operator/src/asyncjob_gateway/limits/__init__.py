"""What a request may take: connections, bytes, depth, time, rate, and how many at once."""

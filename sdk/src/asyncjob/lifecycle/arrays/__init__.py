"""Arrays: many items under one object, run in chunks, each of which is an ordinary job; pure."""

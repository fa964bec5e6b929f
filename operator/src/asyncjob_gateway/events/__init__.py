"""Changes as server-sent events."""

"""A deployment that waits until a person has approved it."""

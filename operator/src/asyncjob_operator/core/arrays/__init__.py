"""Decisions about arrays: what to cut, create, count and remove; pure."""

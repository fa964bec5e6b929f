"""Decisions about schedules, carried to the API server."""

"""Schedules and their jobs, as far as the operator sees them."""

"""Alerts and dashboard: what is written down of them, and what tests do with them."""

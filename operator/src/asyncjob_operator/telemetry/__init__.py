"""Metrics, logs and health of the operator, and the quarantine of errors."""

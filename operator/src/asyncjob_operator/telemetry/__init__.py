"""Metrics, logs and health of the operator, and the containment of errors."""

"""Perturbation: real processes on a real API server, killed at every request of a scenario."""

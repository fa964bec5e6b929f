"""Arithmetic of the benchmark. Pure: no clock, no process, no network."""

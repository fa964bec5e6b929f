"""The faults, one module for each group."""

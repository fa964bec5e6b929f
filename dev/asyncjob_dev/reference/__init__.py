"""Writes the generated parts of the documentation from the models and the transition table."""

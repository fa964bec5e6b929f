"""The protocol, searched with its own functions."""

"""The benchmark: how fast the whole is beside the API server's own limit and beside others.

Generator, runner and checker. Nothing the project ships imports it.
"""

"""A release rehearsed: what the release workflow builds is built, checked, installed and run.

Each step can be run alone. Start at `__main__`; a distribution more is a line in `distributions`.
"""

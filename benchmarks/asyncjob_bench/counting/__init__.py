"""Counts that no noise moves: instructions and memory blocks of the pure paths, per job.

They run with the tests, so that a change that costs more per job is noticed on any machine.
"""

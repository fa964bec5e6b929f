"""A watched copy of the jobs, queues and workers of each namespace, for lists and counts.

Never a source of truth of its own.
"""

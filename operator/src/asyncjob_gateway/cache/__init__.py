"""A watched copy of what each namespace has: jobs, queues, schedules and workers, for lists.

Never a source of truth of its own.
"""

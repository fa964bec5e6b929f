"""A watched copy of what each namespace has: jobs, queues, cron jobs and workers, for lists.

Never a source of truth of its own.
"""

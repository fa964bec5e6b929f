"""The control loops: they evaluate jobs, queues and cron jobs, and write what is due.

Each reads an object, decides with the core, verifies and writes once. What is due comes off a work
queue; only the leading replica writes.
"""

"""How handlers are started, and those with a process of their own: its pool, protocol and limits.

Such a handler can be killed, has a memory limit, and does not take the worker with it when it dies.
"""

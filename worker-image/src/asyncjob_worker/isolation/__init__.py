"""Handlers in processes of their own: killable, with a memory limit, and survivable."""

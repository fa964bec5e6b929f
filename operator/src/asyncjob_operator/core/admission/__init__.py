"""Admission to queues with limits: who waits, in which order, and which places there are.

A place is reserved in the AsyncQueue's status by compare-and-set before its job is admitted, so
that of two operators which both believe to lead only one can give it away. It is taken back only
for what can never be undone: the job is finished, gone, back from an attempt, or no longer queued.
"""

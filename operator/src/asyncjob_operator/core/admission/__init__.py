"""Admission to queues with limits: which jobs wait, in which order, and which reservations exist.

A reservation is written into the AsyncQueue's status by compare-and-set before its job is admitted,
so that of two operators which both believe that they lead only one can grant it. It is reclaimed
only for reasons that are final: the job has finished, was deleted, has returned from an attempt, or
has left the stay in Queued that the reservation is for.
"""

"""The rules of a job's life, pure: no clock, randomness, event loop or I/O.

`phases` and `transitions` are the table that everything else is generated from; `policy` decides on
retries; `claim` and `phase_change` compute the one status change that carries a decision.
"""

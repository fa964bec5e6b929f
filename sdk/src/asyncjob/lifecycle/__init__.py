"""The rules of a job's life, pure: no clock, chance, event loop or I/O.

`phases` and `transitions` are the table everything else is generated from; `policy` and `retry`
decide; `claim`, `outcome` and `gate` compute the one status change that carries a decision.
"""

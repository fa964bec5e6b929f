"""Mutation testing: small changes of the pure code, one at a time. A test has to notice each.

`mutmut` leaves out what is decorated and what stands outside functions, which here are most of the
views and tables; a process per change, as other tools have it, costs five seconds of imports each.
So here one process has imported everything and forks once per change: the child takes over the
changed function's code, runs the tests that reach the changed line, and ends with the first that
fails. What is not in a function, or was run by an import, is tried by importing everything again.
"""

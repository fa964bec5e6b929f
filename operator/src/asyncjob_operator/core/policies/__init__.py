"""Policies: what the operator does about a job, one pure function for each rule.

Each policy takes a snapshot of the job and returns the effect that is due, if any.
"""

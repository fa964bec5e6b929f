"""Manifests made from the models and the transition table: CRDs, their rules, and policies.

Runs at development time only; nothing that serves a job imports it.
"""

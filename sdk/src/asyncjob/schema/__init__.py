"""Generates the manifests from the models, the transition table and the rules: CRDs and policies.

Runs at development time; nothing that serves a job imports it.
"""

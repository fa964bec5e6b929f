"""Payloads from elsewhere, and results that go elsewhere: the worker's side of it."""

"""The REST gateway: jobs over HTTP, for callers who know nothing of Kubernetes.

Stateless: the API server keeps the truth, so that any number of replicas answer alike.
"""

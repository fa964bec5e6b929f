"""A client directly on Kubernetes.

It needs only the RBAC rights of the methods that are called, and leaves all rules to the API
server.
"""

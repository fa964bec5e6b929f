"""The operations of a client directly on Kubernetes. Sans-IO: gateway and clients drive them.

They need only the RBAC rights of the methods that are called, and leave all rules to the API
server.
"""

from asyncjob.client.kubernetes.operations import KubernetesOperations

__all__ = ["KubernetesOperations"]

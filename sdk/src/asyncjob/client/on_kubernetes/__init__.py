"""The operations of a client, straight on Kubernetes. Sans-IO: gateway and clients drive them.

They need of RBAC what each of them does and no more, and leave all rules to the API server.
"""

from asyncjob.client.on_kubernetes.operations import KubernetesOperations

__all__ = ["KubernetesOperations"]

"""Access to the API server: who we are, single requests, watches. Knows nothing of jobs' rules."""

from asyncjob.kube.access import ClusterAccess, load_access
from asyncjob.kube.session import KubeSession
from asyncjob.kube.watch import WatchEvent, watch

__all__ = ["ClusterAccess", "KubeSession", "WatchEvent", "load_access", "watch"]

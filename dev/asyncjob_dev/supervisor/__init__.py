"""Plays the kubelet for worker processes and keeps other processes."""

from asyncjob_dev.process import ManagedProcess
from asyncjob_dev.supervisor.pods import DevPods
from asyncjob_dev.supervisor.worker import DevWorker, WorkerSpec

__all__ = ["DevPods", "DevWorker", "ManagedProcess", "WorkerSpec"]

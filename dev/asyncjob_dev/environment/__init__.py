"""The whole of asyncjob on one machine: control plane, CRDs, operator and workers.

`Environment` runs it in this process; `background` keeps one running for `make up`.
"""

from asyncjob_dev.environment.environment import Environment
from asyncjob_dev.environment.settings import ROOT, EnvironmentPaths, EnvironmentSettings

__all__ = ["ROOT", "Environment", "EnvironmentPaths", "EnvironmentSettings"]

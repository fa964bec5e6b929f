"""The whole of asyncjob on one machine: control plane, CRDs, operator and workers.

`Environment` runs it in this process; `background` keeps one running for `make up`.
"""

from asyncjob_dev.environment.environment import Environment
from asyncjob_dev.environment.layout import ROOT, EnvironmentPaths
from asyncjob_dev.environment.settings import EnvironmentSettings

__all__ = ["ROOT", "Environment", "EnvironmentPaths", "EnvironmentSettings"]

"""The command line `asyncjob`, also installed as `kubectl-asyncjob`.

It speaks through the `Jobs` interface of `asyncjob.client` and knows neither how a job is stored
nor how REST looks; only `doctor` looks at the cluster itself. What is shown, which exit code, what
a doctor says: pure functions. `commands` has a module for each group of commands and acts.

Nothing here imports models or clients before a command is chosen: `--help` takes no time.
"""

"""The command line `asyncjob`, also installed as `kubectl-asyncjob`.

Start at `entry`. Commands use the `Jobs` interface of `asyncjob.client` and know neither how a job
is stored nor what REST looks like; only `doctor`, `backup` and lists of all namespaces talk to the
API server themselves. Tables, exit codes and findings come from pure functions. No models or
clients are imported before a command is chosen, so `--help` is fast.
"""

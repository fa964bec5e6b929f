"""`asyncjob dev`: all that a project's jobs need, on this machine, in the foreground."""

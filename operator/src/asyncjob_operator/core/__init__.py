"""The operator's decisions, as pure functions: clock readings and jitter are arguments, no I/O."""

"""One policy per module: a small pure predicate over a snapshot and the effect it asks for."""

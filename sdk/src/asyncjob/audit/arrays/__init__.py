"""Arrays in a history: what each version says, and the rules of arrays and their chunks."""

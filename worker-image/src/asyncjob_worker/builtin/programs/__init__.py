"""`exec`: run a program, where the allow-list has it."""

"""What became of the jobs of one cell. Pure: it reads what was left behind."""

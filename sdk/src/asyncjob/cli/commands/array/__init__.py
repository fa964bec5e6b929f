"""`array`: submits, shows and controls arrays."""

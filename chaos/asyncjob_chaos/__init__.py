"""Faults on real processes, under load, and a judgement of what became of every job."""

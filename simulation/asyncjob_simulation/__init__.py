"""The cluster as a simulation sees it: in memory, by a clock from outside, with faults."""

"""Histories of arrays: made by hand, good and broken, and changes that break a recorded one."""

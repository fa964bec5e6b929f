"""Imported last by the process that forks the parts.

A collection in a part then does not walk through, and so copy, all that was imported: that is a
tenth of a second for each.
"""

import gc

gc.collect()
gc.freeze()

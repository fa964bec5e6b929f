"""Imported last by the process that forks the parts.

A collection in a part then does not walk through, and so copy, all that was imported: that is a
tenth of a second for each.

That process also ends with the one that started it, however that ends, and the parts end with it.
Left to itself it would wait for the last part to end, and the parts for it.
"""

import gc

from asyncjob_perturbation.processes import end_with_parent

gc.collect()
gc.freeze()
end_with_parent()

"""Records the history of jobs and judges it, apart from the rules that the API server enforces.

`recorder` stores each version that a watch shows in the file of `history_file`; `checker` reads it
and asks the rules of `catalog`. Nothing here is shared with `asyncjob.rules` and
`asyncjob.lifecycle`: an error there would be an error here, and nobody would see it.
"""

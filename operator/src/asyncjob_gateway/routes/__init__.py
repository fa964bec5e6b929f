"""The routes of the API, one module per area.

Each names the rights that it takes; they are checked before its body is read.
"""

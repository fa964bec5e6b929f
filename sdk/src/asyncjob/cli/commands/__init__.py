"""The commands, a module for each group of them.

They call the client and print; what to print and which exit code to return is decided by pure
functions.
"""

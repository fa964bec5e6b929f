"""`export` and `restore`: all objects of a namespace, or of all, into a file and back.

What a file holds, which jobs come back and as what: pure. A status cannot be restored through the
API, so a job that comes back has not begun; the file keeps what is known of it. It must not know
of REST: a gateway has no such thing.
"""

"""What a release has to be before it is one, and what it leaves for the next one to be tested on.

`tests/releases/VERSION` holds the chart of a release and the writes that its worker and operator
make, as text: so an upgrade can be tested in a clone that has no history.
"""

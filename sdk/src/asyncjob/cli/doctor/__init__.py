"""The checks of `doctor`.

Each one has a function that fetches facts and a pure function that turns them into findings;
`examination` runs them in order.
"""

"""The arrays of the fake cluster, and the operator's part in them."""

"""Authentication and authorization: the cluster's own answers, remembered briefly."""

"""Who asks, and what they may do: the cluster's own answer, remembered briefly."""

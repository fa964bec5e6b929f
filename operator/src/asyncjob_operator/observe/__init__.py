"""What is seen of the cluster, kept lean, and judged as it comes. Writes nothing."""

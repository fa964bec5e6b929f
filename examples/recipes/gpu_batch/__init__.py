"""A native Job with GPUs, started and followed by an AsyncJob."""

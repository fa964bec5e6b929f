"""The rules of the API server, translated and proven."""

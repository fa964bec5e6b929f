"""`http`: call a URL, where the allow-list lets it."""

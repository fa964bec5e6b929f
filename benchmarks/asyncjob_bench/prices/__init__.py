"""What schema and laws cost the API server: the same three writes with one thing less at a time."""

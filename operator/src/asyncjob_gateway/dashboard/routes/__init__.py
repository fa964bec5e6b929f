"""The pages, one module per area. Each asks for the right first, reads or acts, and shows."""

"""The routes, one module per area. Each asks for the right first, then for the operation."""

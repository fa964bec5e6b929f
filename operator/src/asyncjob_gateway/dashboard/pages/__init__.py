"""The pages, one module per page: rights, reading or acting, and rendering."""

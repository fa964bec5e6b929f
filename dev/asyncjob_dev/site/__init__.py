"""The documentation as a site: `docs/` rendered, with navigation and versions."""

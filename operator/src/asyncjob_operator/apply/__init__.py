"""Carries decisions to the API server: one conditional write each, and then the telling."""

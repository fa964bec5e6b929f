"""Invoices: plain functions that Celery's tasks and our handlers may both call."""

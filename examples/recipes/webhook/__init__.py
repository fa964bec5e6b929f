"""What another system sends becomes a job, once however often it is sent."""

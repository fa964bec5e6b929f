"""The operator: all that time, failure and policy demand of AsyncJobs."""

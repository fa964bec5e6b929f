"""What the operator knows of the cluster: jobs, queues, workers and the runs of cron jobs.

It is fed by watches, lists and the answers to writes.
"""

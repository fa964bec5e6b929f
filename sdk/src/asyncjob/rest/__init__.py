"""What REST speaks: requests and answers of the gateway, as both of its ends see them.

Pure data. The gateway serves these, the clients send and return them, and the OpenAPI document is
made of them. How a job is stored is the business of `asyncjob.models`.
"""

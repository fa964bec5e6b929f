"""What REST speaks: requests and responses of the gateway, as both of its ends see them.

Pure data and pure functions. The gateway serves these, the clients send and return them, and the
OpenAPI document is made from them. How a job is stored is the business of `asyncjob.models`.
"""

"""What is proven of the protocol and of the API server's rules; run by `make prove`.

`induction` proves with Z3 that the rules keep the promises and that each rule is needed. `search`
visits every state of small worlds whose steps are the project's own functions. `short_model` is the
protocol in one page, with its own checker.
"""

"""What each code means that users meet: rules, reasons, problem types, exit codes and errors.

The texts are the TOML files in `data`, one page each. `asyncjob explain` and the pages of
`docs/reference/errors` are made from them; so is every table elsewhere that says what a code means.
"""

"""What `doctor` looks at: a module for each concern. Each looks (asks) and judges (pure) apart.

`examination` knows the order, and what depends on what.
"""

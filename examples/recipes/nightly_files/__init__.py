"""Every file of a folder, once a night, in parts that run beside each other."""

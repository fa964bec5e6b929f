"""What people give to commands: names, filters, files of jobs and the options of `submit`."""

"""What the programs of all parts share: the options they read, and how Ctrl-C ends them."""

"""A gateway whose event loop is measured: see `loop_watch`."""

from asyncjob_gateway.cli import main
from support.programs.loop_watch import watch_loop

if __name__ == "__main__":
    watch_loop()
    main()

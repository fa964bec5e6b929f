"""`python -m asyncjob_bench.harness.profiled FILE SCRIPT …`: run a program and keep its profile.

In CPU time of its main thread, in which the event loop is: by the clock, waiting would come first.
"""

import cProfile
import runpy
import sys
import time


def main() -> None:
    """Run the script as if it had been called itself."""
    file, *sys.argv = sys.argv[1:]
    profile = cProfile.Profile(time.thread_time)
    try:
        profile.runcall(runpy.run_path, sys.argv[0], run_name="__main__")
    finally:
        profile.dump_stats(file)


if __name__ == "__main__":
    main()

"""`python -m asyncjob_chaos`."""

from asyncjob_chaos.cli import command

if __name__ == "__main__":
    command()

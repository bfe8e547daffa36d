"""Runs the command line: `python -m linearcore` is the same as `linearcore`."""

from linearcore.cli import main

if __name__ == "__main__":
    main()

"""`python -m linearcore` is `linearcore`."""

from linearcore.cli import main

if __name__ == "__main__":
    main()

"""`python -m holdfast.cli`: the command for child processes."""

from holdfast.cli.main import main

if __name__ == "__main__":
    main()

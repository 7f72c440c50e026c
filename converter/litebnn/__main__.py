"""Where the command `litebnn` starts: Ctrl-C ends it in one line also while it is still being imported."""

import sys


def main() -> int:
    """Runs the command line and returns the exit code."""
    try:
        from litebnn import cli
    except KeyboardInterrupt:
        print("litebnn: interrupted", file=sys.stderr)
        return 128 + 2
    return cli.main()


# Processes that a command starts import this module anew, and must not run the command once more.
if __name__ == "__main__":
    raise SystemExit(main())

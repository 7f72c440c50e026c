"""The entry point of the command `litebnn`, which also handles Ctrl-C while modules are being imported."""

import sys


def main() -> int:
    """Runs the command line and returns the exit code."""
    try:
        from litebnn import cli
    except KeyboardInterrupt:
        print("litebnn: interrupted", file=sys.stderr)
        return 128 + 2
    return cli.main()


# Processes that a command starts import this module again. They must not run the command again.
if __name__ == "__main__":
    raise SystemExit(main())

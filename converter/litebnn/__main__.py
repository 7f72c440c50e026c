from litebnn.cli import main

# Processes that a command starts import this module anew, and must not run the command once more.
if __name__ == "__main__":
    raise SystemExit(main())

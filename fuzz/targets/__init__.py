"""What libFuzzer and atheris call with bytes: a program each."""

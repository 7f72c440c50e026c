"""The targets of libFuzzer and atheris, one program each."""

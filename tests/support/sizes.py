"""Measures the number of lines of each function in source code."""

import ast
import re

# The pattern of comments, strings, characters and preprocessor lines. They may contain braces that are not code.
NO_CODE = re.compile(
    r"//[^\n]*|/\*.*?\*/|R\"\((?:.*?)\)\"|\"(?:\\.|[^\"\\\n])*\"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])'|^#(?:\\\n|[^\n])*",
    re.DOTALL | re.MULTILINE,
)
# The pattern of a braced initializer. No space precedes its braces, whereas clang-format puts a space before the braces
# of a block.
INITIALIZER = re.compile(r"(?<=[\w>\])])\{[^{}]*\}")
# The pattern of a C++ attribute such as alignas(64). Its parentheses in the head of a class would look like those of a
# function.
ATTRIBUTE = re.compile(r"(?:alignas|__attribute__)\s*\((?:[^()]|\([^()]*\))*\)")


def python_functions(text: str) -> dict[str, int]:
    """The number of lines of each function of a Python file, by its name."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = (node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds))
    return {node.name: (node.end_lineno or node.lineno) - node.lineno + 1 for node in functions}


def cpp_functions(text: str) -> dict[str, int]:
    """The number of lines of each function of a clang-formatted C++ file, by the text before its body."""
    code, initializers = NO_CODE.sub(_blank, text), 1
    while initializers:
        code, initializers = INITIALIZER.subn(_blank, code)
    functions: dict[str, int] = {}
    begin = end = 0
    for mark in re.finditer(r"[{};]", code):
        if mark.start() < end:
            continue
        head = code[begin : mark.start()]
        is_parameter, is_value = head.count("(") > head.count(")"), head.rstrip().endswith("=")
        is_function = "(" in ATTRIBUTE.sub("", head)
        if mark[0] != "{" or not (is_parameter or is_value or is_function):
            # Functions are also searched inside the braces of a namespace or a class.
            begin = mark.end()
            continue
        end = _after_block(code, mark.start())
        if not is_parameter:
            if not is_value:
                functions[" ".join(head.split())] = code.count("\n", begin + _indent(head), end) + 1
            begin = end
    return functions


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def _indent(head: str) -> int:
    return len(head) - len(head.lstrip())


def _after_block(code: str, begin: int) -> int:
    """The position after the block whose opening brace is at `begin`."""
    depth = 0
    for brace in re.finditer(r"[{}]", code[begin:]):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return begin + brace.end()
    return len(code)

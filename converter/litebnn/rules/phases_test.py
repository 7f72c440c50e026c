"""Rules rely on the validation of models, which knows the ops in `FACTS`."""

import ast
from pathlib import Path

from litebnn.flatbuffer.schema import schema
from litebnn.graph import FACTS


def test_a_rule_names_no_builtin_op_that_models_are_not_checked_for() -> None:
    """Such a rule could read inputs that do not exist."""
    builtins = {name for name in vars(schema.BuiltinOperator) if name.isupper()} - {"CUSTOM"}
    checked = {name for name, facts in FACTS.items() if facts.most}
    assert len(checked) > 40
    for file in Path(__file__).parent.rglob("*.py"):
        if not file.stem.endswith("_test"):
            constants = {node.value for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Constant)}
            assert constants & builtins <= checked, file

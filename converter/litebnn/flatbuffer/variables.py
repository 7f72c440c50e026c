"""Finds the variables of a model, which keep values from one run to the next, without reading the rest of a file."""

from litebnn.flatbuffer.schema import OPERATOR_NAMES, listed, schema


def find_variable_tensor(content: bytes) -> str | None:
    """The name of the first tensor that is a variable, such as the state of an LSTM; None if there is none.

    Args:
        content: a file that a runtime has accepted, so it is valid.
    """
    graphs = listed(schema.Model.GetRootAs(content, 0), "Subgraphs")
    variables = (tensor for graph in graphs for tensor in listed(graph, "Tensors") if tensor.IsVariable())
    return next((tensor.Name().decode() for tensor in variables), None)


def assigns_variables(content: bytes) -> bool:
    """True if ops assign variables, which are resources and no tensors.

    Args:
        content: a file that a runtime has accepted, so it is valid.
    """
    codes = listed(schema.Model.GetRootAs(content, 0), "OperatorCodes")
    return any(OPERATOR_NAMES.get(code.BuiltinCode()) == "ASSIGN_VARIABLE" for code in codes)

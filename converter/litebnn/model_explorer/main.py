"""The adapter that Model Explorer finds by the name of this module. It shows `.tflite` files with packed signs
unpacked."""

from __future__ import annotations

from typing import Any

from model_explorer import Adapter, AdapterMetadata
from model_explorer.builtin_tflite_flatbuffer_adapter import BuiltinTfliteFlatbufferAdapter

from litebnn.files import read_file
from litebnn.flatbuffer import read_model
from litebnn.model_explorer.signs import show_signs

# The number of elements of a constant that Model Explorer shows by default.
_ELEMENTS = 16


class LitebnnAdapter(Adapter):
    """Model Explorer's own view of a `.tflite` file, in which the packed words of Lce ops are shown as signs."""

    metadata = AdapterMetadata(
        id="litebnn",
        name="litebnn (signs as ±1)",
        description="TFLite models with binary layers: packed filters and tensors of bits are shown as signs.",
        fileExts=["tflite"],
    )

    def convert(self, model_path: str, settings: dict[str, Any]) -> Any:
        """The graphs of the file at `model_path`.

        Raises:
            ConversionError: the file is not a `.tflite` file, or an op in it violates docs/ops.md.
        """
        model = read_model(read_file(model_path))
        found = BuiltinTfliteFlatbufferAdapter().convert(model_path, settings)
        limit = settings.get("const_element_count_limit", _ELEMENTS)
        for collection in found["graphCollections"]:
            for graph, shown in zip(model.graphs, collection.graphs, strict=True):
                show_signs(graph, shown, limit)
        return found

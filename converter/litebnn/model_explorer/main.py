"""The adapter that Model Explorer finds by this module's name: `.tflite` files with signs where they hold signs."""

from __future__ import annotations

from typing import Any

from model_explorer import Adapter, AdapterMetadata
from model_explorer.builtin_tflite_flatbuffer_adapter import BuiltinTfliteFlatbufferAdapter

from litebnn.flatbuffer import read_model
from litebnn.model_explorer.signs import show_signs
from litebnn.model_files import read_file

# What Model Explorer itself shows of a constant where its settings do not say.
_ELEMENTS = 16


class LitebnnAdapter(Adapter):
    """Model Explorer's own view of a `.tflite` file, in which the Lce ops' words of bits are signs."""

    metadata = AdapterMetadata(
        id="litebnn",
        name="litebnn (signs as ±1)",
        description="TFLite models with binary layers: packed filters and tensors of bits are shown as signs.",
        fileExts=["tflite"],
    )

    def convert(self, model_path: str, settings: dict[str, Any]) -> Any:
        """The graphs of the file at `model_path`.

        Raises:
            ConversionError: it is no `.tflite` file, or an op in it is not as docs/ops.md says.
        """
        model = read_model(read_file(model_path))
        found = BuiltinTfliteFlatbufferAdapter().convert(model_path, settings)
        limit = settings.get("const_element_count_limit", _ELEMENTS)
        for collection in found["graphCollections"]:
            for graph, shown in zip(model.graphs, collection.graphs, strict=True):
                show_signs(graph, shown, limit)
        return found

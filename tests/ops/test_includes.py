"""Includes of the C++ library point one way: entry, partition, ops, kernels, isa, platform."""

import re
from pathlib import Path

OPS = Path(__file__).resolve().parents[2] / "ops"
KERNELS = ("kernels/kernels.h", "kernels/platform/")
# What the files below a path may include besides each other. The longest path that fits a file counts.
MAY_INCLUDE = {
    "include/litebnn/": (),
    "kernels/kernels.h": (),
    "kernels/platform/": (),
    "kernels/isa/": KERNELS,
    "kernels/": (*KERNELS, "kernels/isa/"),
    "tflite/runtime/": (),
    "tflite/ops/": (*KERNELS, "tflite/runtime/"),
    "tflite/partition/": (*KERNELS, "tflite/runtime/", "tflite/ops/"),
    "tflite/entry/": (*KERNELS, "tflite/runtime/", "tflite/ops/", "tflite/partition/", "include/litebnn/"),
}


def place(path: str) -> str:
    return max((place for place in MAY_INCLUDE if path.startswith(place)), key=len)


def test_includes_point_one_way() -> None:
    wrong, seen = [], set()
    for folder in ("include", "kernels", "tflite"):
        for file in sorted((OPS / folder).rglob("*.[chS]*")):
            own = place(file.relative_to(OPS).as_posix())
            for included in re.findall(r'^\s*#\s*include "([^"]+)"', file.read_text(encoding="utf-8"), re.M):
                other = place(included if (OPS / included).exists() else f"include/{included}")
                seen.add((own, other))
                if other not in (own, *MAY_INCLUDE[own]):
                    wrong.append(f"{file.relative_to(OPS)} may not include {included}")
    assert wrong == []
    assert len(seen) > len(MAY_INCLUDE)

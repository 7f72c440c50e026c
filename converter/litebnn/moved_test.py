from importlib import import_module
from types import ModuleType

import pytest

from litebnn.moved import MOVED, spec_of


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_a_module_has_its_old_name_too(old: str, new: str) -> None:
    if old.startswith("litebnn.keras"):
        pytest.importorskip("keras")
    with pytest.warns(DeprecationWarning, match=f"{old} is now {new}"):
        former = import_module(old)
    found = vars(import_module(new))
    names = {name for name, value in found.items() if not name.startswith("__") and not isinstance(value, ModuleType)}
    assert {name for name in names if vars(former)[name] is found[name]} == names


def test_modules_of_a_package_that_moved() -> None:
    with pytest.warns(DeprecationWarning, match="is now litebnn.verify.divergence"):
        from litebnn.report.differences.divergence import TOLERANCE
    assert TOLERANCE == import_module("litebnn.verify.divergence").TOLERANCE


def test_other_names_are_unknown() -> None:
    assert spec_of("litebnn.build.nothing") is None
    with pytest.raises(ModuleNotFoundError, match="litebnn.nothing"):
        import_module("litebnn.nothing")

import io
from pathlib import Path

import pytest
from rich.console import Console

from tests.everything import AREAS, area_of, table

RESULTS = """<testsuites><testsuite>
<testcase classname="tests.ops.test_cpp" name="test_cpp[thread-threads_test]"/>
<testcase classname="tests.ops.test_valgrind" name="test_golden_models[1x1]">
  <skipped type="pytest.skip" message="valgrind is missing: install\nthe Debian package"/></testcase>
<testcase classname="tests.ops.test_valgrind" name="test_golden_models[bias]">
  <skipped type="pytest.skip" message="valgrind is missing: install\nthe Debian package"/></testcase>
<testcase classname="converter.litebnn.convert_test" name="test"><failure message="no"/></testcase>
</testsuite></testsuites>"""


@pytest.mark.parametrize(
    ("name", "area"),
    [
        ("tests.ops.test_cpp::test_cpp[address-ops_test]", "AddressSanitizer, UBSan"),
        ("tests.ops.test_cpp::test_cpp[thread-threads_test]", "ThreadSanitizer"),
        ("tests.ops.test_cpp::test_cpp[plain-ops_test]", "C++ tests"),
        ("tests.ops.test_stress::test_ten_thousand_interpreters", "stress"),
        ("tests.emulated.test_emulated::test_cpp_tests[rpi4]", "emulated Arm"),
        ("converter.litebnn.flatbuffer.reader_test::test_a_truncated_file", "converter"),
        ("tests.test_docs::test_targets", "project"),
    ],
)
def test_a_test_has_one_area(name: str, area: str) -> None:
    assert area_of(name) == area


def test_the_table_says_what_was_skipped_and_why(tmp_path: Path) -> None:
    results = tmp_path / "results.xml"
    results.write_text(RESULTS)
    out = io.StringIO()
    Console(file=out, width=160).print(table(results))
    rows = {
        cells[1].strip(): [cell.strip() for cell in cells[2:6]]
        for cells in (line.split("│") for line in out.getvalue().splitlines())
        if len(cells) > 5
    }
    assert rows["ThreadSanitizer"] == ["1", "0", "0", ""]
    assert rows["valgrind"] == ["0", "0", "2", "2 × valgrind is missing: install the Debian package"]
    assert rows["converter"] == ["0", "1", "0", ""]
    assert rows["stress"] == ["0", "0", "0", "no test of it was found"]
    assert set(AREAS) <= set(rows)

"""Reading of JSON that may be anything."""

from decimal import Decimal

import pytest

from pirunner import records


@pytest.mark.parametrize(
    "line",
    [b"", b"\n", b"[1]", b"1", b'"x"', b'{"a":', b"\xff", b"nonsense", b"[" * 100_000, b'{"a":' + b"9" * 5000 + b"}"],
)
def test_no_record(line: bytes) -> None:
    assert records.parse_record(line) is None


def test_fractions_are_decimal_and_non_numbers_are_absent() -> None:
    record = records.parse_record(b'{"a":0.1,"b":NaN,"c":-Infinity,"d":1}\r\n')
    assert record == {"a": Decimal("0.1"), "b": None, "c": None, "d": 1}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, 3),
        (Decimal("3.0"), 3),
        (Decimal("3.5"), None),
        (Decimal("1e999999"), None),
        (Decimal("-1e9999999"), None),
        (Decimal("Infinity"), None),
        (True, None),
        ("3", None),
        (None, None),
    ],
)
def test_integer(value: object, expected: int | None) -> None:
    assert records.integer({"n": value}, "n") == expected


def test_wrong_shapes_read_as_empty() -> None:
    record: records.Record = {"map": [], "list": {}, "text": 1, "objects": [1, {"a": 1}, None]}
    assert records.mapping(record, "map") == {}
    assert records.items(record, "list") == []
    assert records.text(record, "text") == ""
    assert records.objects(record, "objects") == [{"a": 1}]

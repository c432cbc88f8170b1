from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extraction.numbers import parse_amount


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("29.90", "29.9"),
        (1299, "1299"),
        (0.1, "0.1"),
        ("1.299,00", "1299"),
        ("1,299.00", "1299"),
        ("1 299,00", "1299"),
        ("1’299.50", "1299.5"),
        ("0.299", "0.299"),
        ("29,90 €", "29.9"),
        (",89 €", "0.89"),
        ("R$ 2.720,00", "2720"),
        ("1,23,456.00", "123456"),
        ("0", "0"),
    ],
)
def test_it_reads_amounts_as_shops_write_them(text: object, amount: str) -> None:
    assert parse_amount(text) == Decimal(amount)


@pytest.mark.parametrize(
    "text", [None, True, "", "free", "-5", "NaN", "Infinity", "1e400", "9" * 40, float("inf")]
)
def test_what_is_no_amount_is_none(text: object) -> None:
    assert parse_amount(text) is None


@given(st.text() | st.integers() | st.floats() | st.none() | st.booleans())
def test_it_never_raises_and_never_answers_nonsense(value: object) -> None:
    amount = parse_amount(value)
    assert amount is None or (amount.is_finite() and 0 <= amount < Decimal(10) ** 10)

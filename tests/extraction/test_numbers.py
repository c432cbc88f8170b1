from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extraction.currencies import host_currency, iso_code, locale_currency
from extraction.numbers import Kind, parse_amount, parse_price


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
    "text",
    [None, True, "", "free", "-5", "NaN", "Infinity", "1e400", "9" * 40, float("inf"), 10**4000],
)
def test_what_is_no_amount_is_none(text: object) -> None:
    assert parse_amount(text) is None


@pytest.mark.parametrize(
    ("text", "amount", "currency"),
    [
        ("1’234.50", "1234.50", ""),
        ("CHF 1'234.-", "1234", "CHF"),
        ("3.350", "3.35", ""),
        ("3.350 KWD", "3.35", "KWD"),
        ("1,400", "1400", ""),
        ("1.899,-", "1899", ""),
        (",89 €", "0.89", "EUR"),
        ("19€99", "19.99", "EUR"),
        ("1.299,95 €", "1299.95", "EUR"),
        ("1.299 €", "1299", "EUR"),
        ("12,12€", "12.12", "EUR"),
        ("R$ 2.720,00", "2720", "BRL"),
        ("₹1,23,456", "123456", "INR"),
        ("Rp 31.500", "31500", "IDR"),
        ("7 990,50 zł", "7990.5", "PLN"),
        ("199,- Kč", "199", "CZK"),
        ("118, 99 TL", "118.99", "TRY"),
        ("CA$ 1,299", "1299", "CAD"),
        ("$1,190.00 AUD", "1190", "AUD"),
        ("2 pairs from £349", "349", "GBP"),
        ("2 for £10", "10", "GBP"),
        ("Was £50 Now £40", "40", "GBP"),
        ("statt 50,00 € jetzt 40,00 €", "40", "EUR"),
        ("£49/mo or £1,999", "1999", "GBP"),
        ("3 x 33,33 € oder 95,00 €", "95", "EUR"),
        ("£12.99 (£1.30/100g)", "12.99", "GBP"),
        ("10 – 20 €", "10", "EUR"),
        ("Save £20 Price £80", "80", "GBP"),
        ("129,00 € (-15%)", "129", "EUR"),
        ("1250,60 € inkl. 19% MwSt.", "1250.6", "EUR"),
        ("١٢٣٫٥٠ ر.س", "123.5", "SAR"),
        ("１，２３４円", "1234", "JPY"),
        ("1.234.567 Ft", "1234567", "HUF"),
    ],
)
def test_the_price_to_pay_is_read_from_hard_strings(text: str, amount: str, currency: str) -> None:
    price = parse_price(text)
    assert (price.amount, price.currency) == (Decimal(amount), currency)


# Strings that known readers get wrong: where shops mean an amount, it is the one to pay.
HARD = {
    "1’234.50": "1234.50", "3.350": "3.35", ",89 €": "0.89", "2 pairs from $349": "349",
    "Was $50 Now $40": "40", "3 x 33,33 €": "33.33", "$49/mo or $1,999": "1999", "Save $200": None,
    "1,400": "1400", "¥10,000": "10000", "R$ 2.720,00": "2720", "1.299,95 €": "1299.95",
    "1 299,00 kr": "1299", "199,-": "199", "₹1,23,456": "123456", "12,50 – 20,00 €": "12.50",
    "Free shipping over $50": None, "10 % Rabatt": None, "19€99": "19.99", "KD 3.350": "3.35",
    "٤٩٫٩٩ ر.س": "49.99", "2 for $10": "10", "from £12.50": "12.50", "€ 1.234.567,89": "1234567.89",
    "statt 99,00 € jetzt nur 79,00 €": "79",
}  # fmt: skip


@pytest.mark.parametrize(("text", "amount"), HARD.items())
def test_the_hard_list_is_read_right(text: str, amount: str | None) -> None:
    assert parse_price(text).amount == (None if amount is None else Decimal(amount))


@pytest.mark.parametrize(
    "text",
    [
        "Save $200",
        "-$5",
        "20% off",
        "Free shipping over $50",
        "15.08.2017",
        "16.00 ft",
        "6x330 ml",
        "",
        "Call for price",
        "1e400",
        "∞",
        "iPhone12",
    ],
)
def test_a_text_without_a_price_to_pay_gives_none(text: str) -> None:
    assert parse_price(text).amount is None


@pytest.mark.parametrize(
    "text",
    [
        "3 x 33,33 €",
        "$49/mo",
        "or 4 interest-free payments of $12.50",
        "4 easy payments of $5",
        "Pay in 4 payments of $12.50",
        "12 Raten zu je 10,00 €",
        "10x sem juros de R$ 10,00",
        "monthly $12",
        "monatlich 12,50 €",
        "mtl. ab 12,50 €",
    ],
)
def test_an_instalment_says_that_it_is_one(text: str) -> None:
    assert parse_price(text).kind is Kind.INSTALMENT


@pytest.mark.parametrize(
    "text", ["only $10 more", "Spend $50 more for free shipping", "You save: $5.99"]
)
def test_what_is_missing_or_saved_is_no_price(text: str) -> None:
    assert parse_price(text).amount is None


def test_hints_settle_what_the_text_leaves_open() -> None:
    assert parse_price("140.000", decimal_hint=".").amount == Decimal("140")
    assert parse_price("140.000", decimal_hint=",").amount == Decimal("140000")
    assert parse_price("5 799,00", currency_hint="Pris NOK 1 999,00").currency == "NOK"
    assert parse_price("$5", locale_hint="en-CA").currency == "CAD"
    assert parse_price("1 299 kr", locale_hint="sv").currency == "SEK"
    assert parse_price("$5").currency == ""


def test_symbols_mean_what_they_mean_in_their_country() -> None:
    assert iso_code("$", "AUD") == "AUD"
    assert iso_code("€", "CHF") == "EUR"
    assert iso_code("kr.", "DKK") == "DKK"
    assert iso_code("руб.") == "RUB"
    assert locale_currency("de-CH") == "CHF"
    assert host_currency("shop.example.co.uk") == "GBP"
    assert host_currency("example.io") == ""


@given(st.text() | st.integers() | st.floats() | st.none() | st.booleans())
def test_it_never_raises_and_never_answers_nonsense(value: object) -> None:
    amount = parse_amount(value)
    assert amount is None or (amount.is_finite() and 0 <= amount < Decimal(10) ** 10)


@given(st.text(alphabet="0123456789.,' €$xeE-%٣/\ud800\x00kr", max_size=60))
def test_any_mixture_of_digits_and_signs_is_read_or_refused(text: str) -> None:
    amount = parse_price(text, currency_hint=text, locale_hint=text).amount
    assert amount is None or (amount.is_finite() and 0 <= amount < Decimal(10) ** 10)


@given(st.decimals(min_value=0, max_value=999999, places=2))
def test_what_is_written_in_either_style_reads_back(amount: Decimal) -> None:
    english = f"{amount:,.2f}"
    german = english.translate(str.maketrans(",.", ".,"))
    assert parse_price(f"£{english}").amount == amount
    assert parse_price(f"{german} €").amount == amount

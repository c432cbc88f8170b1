from __future__ import annotations

import jsonschema  # type: ignore[import-untyped]
import pytest

from notifications.catalogue import TYPES, EventType, is_pattern, matches


@pytest.mark.parametrize("kind", TYPES.values(), ids=lambda kind: kind.name)
def test_every_example_fits_its_schema(kind: EventType) -> None:
    jsonschema.Draft202012Validator.check_schema(kind.schema)
    jsonschema.validate(kind.example, kind.schema)


@pytest.mark.parametrize("kind", TYPES.values(), ids=lambda kind: kind.name)
def test_no_schema_takes_an_event_without_its_object(kind: EventType) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**kind.example, "data": {}}, kind.schema)


@pytest.mark.parametrize(
    ("patterns", "event_type", "heard"),
    [
        (["*"], "website.failed", True),
        (["product.*"], "product.new_low", True),
        (["product.*"], "website.failed", False),
        (["product.*"], "products.new", False),
        (["product.new_low"], "product.new_low", True),
        (["product.new"], "product.new_low", False),
        (["website.failed", "product.*"], "product.approved", True),
        ([], "product.approved", False),
    ],
)
def test_a_pattern_is_everything_a_group_or_exactly_one_type(
    patterns: list[str], event_type: str, heard: bool
) -> None:
    assert matches(patterns, event_type) is heard


@pytest.mark.parametrize("text", ["", "product", "product.", "prod.*", "*.*", "product.price"])
def test_what_no_event_can_match_is_no_pattern(text: str) -> None:
    assert not is_pattern(text)

"""Serializers that take exactly what they document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers


class Strict:
    """Refuses fields it does not know, by name: a misspelt option must not be ignored."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            known = {f.field_name for f in self._writable_fields}  # type: ignore[attr-defined]
            unknown = [name for name in data if name not in known]
            if unknown:
                raise serializers.ValidationError(
                    {name: ["Unknown or read-only field."] for name in unknown}, code="unknown"
                )
        return super().to_internal_value(data)  # type: ignore[misc]


class StrictSerializer(Strict, serializers.Serializer[Any]):
    pass


class StrictModelSerializer(Strict, serializers.ModelSerializer[Any]):
    pass


class ProblemErrorSerializer(serializers.Serializer[Any]):
    attr = serializers.CharField(allow_null=True, help_text="The field, dotted: `items.0.url`.")
    code = serializers.CharField()
    detail = serializers.CharField()


class ProblemSerializer(serializers.Serializer[Any]):
    """RFC 9457 problem details."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField(help_text="What went wrong and what to do.")
    code = serializers.CharField(help_text="Stable; programs may rely on it.")
    request_id = serializers.CharField()
    errors = ProblemErrorSerializer(many=True)  # type: ignore[assignment]

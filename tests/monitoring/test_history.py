from __future__ import annotations

import uuid

import pytest

from monitoring import history
from monitoring.models import ProductHistory
from tests.factories.monitoring import HistoryFactory

pytestmark = pytest.mark.django_db


def test_history_of_websites_that_are_gone_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "BATCH", 2)
    kept = {HistoryFactory.create().pk, HistoryFactory.create().pk}
    gone = [uuid.UUID(int=0), uuid.uuid4(), uuid.UUID(int=2**128 - 1)]
    for website_id in gone:
        HistoryFactory.create_batch(3, website_id=website_id)
    history.delete_orphaned()
    assert set(ProductHistory.objects.values_list("id", flat=True)) == kept


def test_without_any_history_there_is_nothing_to_delete() -> None:
    history.delete_orphaned()
    assert not ProductHistory.objects.exists()

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import settings


@pytest.fixture(autouse=True, scope="session")
def static_root() -> None:
    """WhiteNoise warns when it is not there, and warnings are errors."""
    Path(settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)

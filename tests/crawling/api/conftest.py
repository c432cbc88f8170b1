from __future__ import annotations

from tests.factories.static import static_root  # noqa: F401

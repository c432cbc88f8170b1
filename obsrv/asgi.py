from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "obsrv.settings")
served = get_asgi_application()

# Only now can modules that read the settings be imported.
from common.asgi import BodyLimit  # noqa: E402

application = BodyLimit(served)

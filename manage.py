#!/usr/bin/env python
from __future__ import annotations

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "obsrv.settings")
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    from obsrv.services import start_for_command

    try:
        settings.DEBUG  # noqa: B018  # the first look reads them all
    except ImproperlyConfigured as error:
        sys.exit(str(error))
    start_for_command(sys.argv[1:2])
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()

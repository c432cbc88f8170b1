"""Every setting of Obsrv, from the environment; see docs/configuration.md."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from kombu import Exchange, Queue

from obsrv import secrets
from obsrv.console import NAVIGATION
from obsrv.embedded import Layout
from obsrv.environment import Environment
from obsrv.logs import logging_config

BASE_DIR = Path(__file__).resolve().parent.parent

env = Environment()
if env.bool("OBSRV_READ_ENV_FILE", default=True):
    env.read_env(BASE_DIR / ".env")

# --- data directory and services ---------------------------------------------------
VAR_DIR = Path(env.str("OBSRV_VAR_DIR", default=str(BASE_DIR / "var"))).resolve()
EMBEDDED = Layout(VAR_DIR, throw_away=env.bool("OBSRV_EMBEDDED_THROW_AWAY", default=False))
# Which of the two must be started by us; an empty variable counts as unset.
DATABASE_URL = env.address("DATABASE_URL", "postgresql", "postgres", "pgsql")
REDIS_URL = env.address("REDIS_URL", "redis", "rediss", "unix")
EMBEDDED_POSTGRES = not DATABASE_URL
EMBEDDED_VALKEY = not REDIS_URL
EMBEDDED_NEEDED = EMBEDDED_POSTGRES or EMBEDDED_VALKEY
DATABASE_URL = DATABASE_URL or EMBEDDED.database_url
REDIS_URL = REDIS_URL or EMBEDDED.redis_url
CELERY_BROKER_URL = env.str(
    "CELERY_BROKER_URL",
    default=REDIS_URL.replace("unix://", "redis+socket://"),
)
BROKER_IS_AMQP = CELERY_BROKER_URL.startswith(("amqp", "pyamqp"))

# --- security ----------------------------------------------------------------------
PRODUCTION = env.bool("OBSRV_PRODUCTION", default=False)
DEBUG = env.bool("OBSRV_DEBUG", default=False)
_generated = {} if PRODUCTION else secrets.load(VAR_DIR / "secrets.json")
SECRET_KEY = env.str("SECRET_KEY", default=_generated.get("SECRET_KEY", ""))
# The first key encrypts; all of them decrypt (secrets at rest).
FIELD_ENCRYPTION_KEYS: list[str] = env.list(
    "FIELD_ENCRYPTION_KEYS",
    default=[_generated["FIELD_ENCRYPTION_KEY"]] if _generated else [],
)
ALLOWED_HOSTS: list[str] = env.list(
    "ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]", "testserver"]
)
CSRF_TRUSTED_ORIGINS: list[str] = env.list("CSRF_TRUSTED_ORIGINS", default=[])
# Where bin/up serves.
HOST = env.str("OBSRV_HOST", default="127.0.0.1")
PORT = env.int_between("OBSRV_PORT", 1, 65535, default=8000)
PUBLIC_URL = env.str("PUBLIC_URL", default=f"http://localhost:{PORT}").rstrip("/")
SESSION_COOKIE_AGE = 8 * 3600
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PRODUCTION
SECURE_SSL_REDIRECT = env.bool("SECURE_SSL_REDIRECT", default=PRODUCTION)
SECURE_HSTS_SECONDS = 31_536_000 if PRODUCTION else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = PRODUCTION
# Health checks come from inside, without TLS.
SECURE_REDIRECT_EXEMPT = [r"^health", r"^metrics$"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if PRODUCTION else None
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"

# --- Django ------------------------------------------------------------------------
INSTALLED_APPS = [
    "common",
    "accounts",
    "crawling",
    "notifications",
    "monitoring",
    "obsrv",
    "unfold",
    "unfold.contrib.filters",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_celery_beat",
    "django_celery_results",
]
MIDDLEWARE = [
    "common.requests.RequestMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "obsrv.policy.ConsolePolicyMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "obsrv.urls"
ASGI_APPLICATION = "obsrv.asgi.application"
APPEND_SLASH = True
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
DATABASES = {"default": env.db_url_config(DATABASE_URL)}
DATABASES["default"]["OPTIONS"] = {
    **DATABASES["default"].get("OPTIONS", {}),
    # A web process serves many threads: they share a few connections.
    **(
        {"pool": {"min_size": 1, "max_size": 20, "timeout": 10}}
        if env.bool("DATABASE_POOL", default=False)
        else {}
    ),
}
DATABASES["default"]["CONN_MAX_AGE"] = 0 if "pool" in DATABASES["default"]["OPTIONS"] else 300
DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
DATABASES["default"]["TEST"] = {"NAME": f"test_obsrv_{env.str('OBSRV_TEST_RUN', default='0')}"}
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "obsrv",
    }
}
AUTH_USER_MODEL = "accounts.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "/admin/login/"
LOGIN_REDIRECT_URL = "/admin/"
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True
FORMAT_MODULE_PATH = ["obsrv.formats"]
STATIC_URL = "/static/"
STATIC_ROOT = Path(env.str("STATIC_ROOT", default=str(VAR_DIR / "static")))
# Fetched pages: files below VAR_DIR, or a bucket (needs the extra obsrv[s3]).
PAGE_STORAGE = env.one_of("PAGE_STORAGE", ["local", "s3"], default="local")
_page_storages: dict[str, dict[str, Any]] = {
    "local": {
        "BACKEND": "crawling.page_storage.LocalPages",
        "OPTIONS": {"location": VAR_DIR / "pages"},
    },
    "s3": {
        "BACKEND": "crawling.bucket_storage.BucketPages",
        "OPTIONS": {
            "bucket_name": env.str("S3_BUCKET", default=""),
            "location": env.str("S3_PREFIX", default="pages"),
            "endpoint_url": env.str("S3_ENDPOINT_URL", default="") or None,
            "region_name": env.str("S3_REGION", default="") or None,
            "access_key": env.str("S3_ACCESS_KEY", default="") or None,
            "secret_key": env.str("S3_SECRET_KEY", default="") or None,
        },
    },
}
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "pages": _page_storages[PAGE_STORAGE],
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
# The embedded start serves assets straight from the packages; images collect them.
WHITENOISE_USE_FINDERS = env.bool("WHITENOISE_USE_FINDERS", default=not PRODUCTION)
if WHITENOISE_USE_FINDERS:
    # WhiteNoise warns when it is not there.
    STATIC_ROOT.mkdir(parents=True, exist_ok=True)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATA_UPLOAD_MAX_MEMORY_SIZE = 10 * 1024 * 1024
LOGGING_CONFIG = None
LOG_FORMAT = env.one_of(
    "LOG_FORMAT", ["console", "json"], default="json" if PRODUCTION else "console"
)
LOG_LEVEL = env.one_of(
    "LOG_LEVEL", ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"], default="INFO"
)
logging_config(LOG_FORMAT, LOG_LEVEL)
TEST_RUNNER = "django.test.runner.DiscoverRunner"
TESTING = "pytest" in sys.modules

# --- Celery: messages are wake-ups, PostgreSQL holds the work -----------------------
CELERY_RESULT_BACKEND = "django-db"
CELERY_RESULT_EXTENDED = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "default"
# Every queue by name: a message for any other is refused where it is sent.
CELERY_TASK_QUEUES = tuple(
    Queue(name, Exchange(name), routing_key=name) for name in ("crawl", "deliver", "default")
)
CELERY_TASK_CREATE_MISSING_QUEUES = False
CELERY_TASK_ROUTES = {
    "crawling.tasks.crawl_slice": {"queue": "crawl"},
    "crawling.tasks.parse_slice": {"queue": "crawl"},
    "notifications.tasks.deliver_due": {"queue": "deliver"},
}
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TIMEZONE = "UTC"
CELERY_ENABLE_UTC = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_PUBLISH_RETRY = False
# Options of Redis; RabbitMQ's driver refuses what it does not know.
CELERY_BROKER_TRANSPORT_OPTIONS = (
    {} if BROKER_IS_AMQP else {"socket_connect_timeout": 2, "socket_timeout": 60}
)
CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"
CELERY_BEAT_MAX_LOOP_INTERVAL = 1
DJANGO_CELERY_BEAT_TZ_AWARE = True

# --- API ---------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["accounts.authentication.ApiKeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["common.drf.permissions.HasScope"],
    "DEFAULT_RENDERER_CLASSES": ["common.drf.rendering.JsonRenderer"],
    "DEFAULT_PARSER_CLASSES": ["common.drf.rendering.StrictJsonParser"],
    "DEFAULT_PAGINATION_CLASS": "common.drf.pagination.CursorPages",
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "common.drf.schema.Schema",
    "EXCEPTION_HANDLER": "common.drf.problems.handle",
    "COERCE_DECIMAL_TO_STRING": True,
    "UNAUTHENTICATED_USER": None,
}
API_BODY_MAX_BYTES = env.int("API_BODY_MAX_BYTES", default=10 * 1024 * 1024)
# What GET /me counts against the limits, by the app that knows.
USAGE_COUNTERS = {"monitoring": "monitoring.registration.usage"}
SPECTACULAR_SETTINGS = {
    "TITLE": "Obsrv API",
    "VERSION": "1",
    "DESCRIPTION": (
        "Price and stock intelligence for online shops. "
        "[What every error means](/docs/errors) · [who crawls](/bot)"
    ),
    "OAS_VERSION": "3.1.1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_AUTHENTICATION": [],
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "notifications.api.contract.add_webhooks",
    ],
    # Many rows have a kind and a status: each list of choices needs a name of its own.
    "ENUM_NAME_OVERRIDES": {
        "WebsiteKind": "monitoring.models.Website.Kind",
        "WebsiteStatus": "monitoring.models.Website.Status",
        "FoundUrlState": "monitoring.models.FoundUrl.State",
        "FoundUrlSource": "monitoring.models.FoundUrl.Source",
        "RobotsVerdict": "monitoring.api.previews.ROBOTS",
        "ValueSource": "monitoring.api.previews.SOURCES",
        "AlertKind": "monitoring.models.AlertRule.Kind",
        "ExportKind": "monitoring.models.Export.Kind",
        "StockStatus": "monitoring.models.StockStatus",
        "ChangeKind": "monitoring.models.Change.Kind",
        "ChangeStatus": "monitoring.models.Change.Status",
        "JobKind": "crawling.models.CrawlJob.Kind",
        "JobStatus": "crawling.models.CrawlJob.Status",
        "TaskStatus": "crawling.models.CrawlTask.Status",
        "ErrorCategory": "crawling.models.CrawlTask.Category",
        "DeliveryStatus": "notifications.models.Delivery.Status",
        "ChannelDigest": "notifications.models.Channel.Digest",
    },
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "SWAGGER_UI_SETTINGS": {
        "persistAuthorization": True,
        "displayRequestDuration": True,
    },
}

# --- crawling ----------------------------------------------------------------------
PAGE_CONSUMERS = {
    "product": "monitoring.intake.receive_pages",
    "discover": "monitoring.discovery.receive_pages",
    "sitemap": "monitoring.discovery.receive_pages",
    "feed": "monitoring.discovery.receive_pages",
    "confirm": "monitoring.intake.receive_pages",
}
# Who hears of pages that could not be fetched.
FAILURE_CONSUMERS = {
    "product": "monitoring.intake.receive_failures",
    "confirm": "monitoring.intake.receive_failures",
    "discover": "monitoring.discovery.receive_failures",
    "sitemap": "monitoring.discovery.receive_failures",
    "feed": "monitoring.discovery.receive_failures",
}
JOB_CONSUMERS = {
    "discovery": "monitoring.discovery_ends.finish_discovery",
    "baseline": "monitoring.health.finish_run",
    "monitor": "monitoring.health.finish_run",
    "urls": "monitoring.runs.finish_second_look",
}
# Who hears of every job that is over.
JOB_NEWS = "monitoring.job_news.tell"
# Who hears that a host failed so often that it is left alone.
CIRCUIT_NEWS = "monitoring.host_news.tell_circuit_opened"
# Asked before stored pages are removed: which of these hashes are still needed?
PAGE_KEEPERS = {"monitoring": "monitoring.evidence.pages_to_keep"}
PAGE_RETENTION_DAYS = env.int_between("PAGE_RETENTION_DAYS", 1, 3650, default=30)
# Threads that pack and write pages; a bucket that answers slowly wants more.
PAGE_WRITERS = env.int_between("PAGE_WRITERS", 1, 64, default=1 if PAGE_STORAGE == "local" else 16)
CRAWL_USER_AGENT = env.str(
    "CRAWL_USER_AGENT", default=f"ObsrvBot/0.1 (+{PUBLIC_URL}/bot; price monitoring)"
)
CRAWL_SLICE_SECONDS = env.float("CRAWL_SLICE_SECONDS", default=30)
CRAWL_LEASE_SECONDS = env.float("CRAWL_LEASE_SECONDS", default=30)
CRAWL_SLICE_DOMAINS = env.int("CRAWL_SLICE_DOMAINS", default=200)
CRAWL_BATCH_PAGES = env.int("CRAWL_BATCH_PAGES", default=200)
CRAWL_BATCH_SECONDS = env.float("CRAWL_BATCH_SECONDS", default=1)
CRAWL_DEFAULT_DELAY_SECONDS = env.float("CRAWL_DEFAULT_DELAY_SECONDS", default=1)
CRAWL_DEFAULT_CONCURRENCY = env.int("CRAWL_DEFAULT_CONCURRENCY", default=2)
CRAWL_LEDGER = env.bool("CRAWL_LEDGER", default=True)
CRAWL_MAX_RETRIES = env.int("CRAWL_MAX_RETRIES", default=3)
# How soon a price that is hard to believe, or a page that is gone, is looked at again.
CONFIRM_SECONDS = env.float("CONFIRM_SECONDS", default=60)
DISCOVERY_MAX_PAGES = env.int("DISCOVERY_MAX_PAGES", default=500)
DISCOVERY_MAX_URLS = env.int_between("DISCOVERY_MAX_URLS", 100, 1_000_000, default=50_000)
# Networks that are crawled and notified although they are not public.
EGRESS_ALLOWED_NETWORKS: list[str] = env.list("EGRESS_ALLOWED_NETWORKS", default=[])
# The shortest interval a client's key may set for a website; operators may go lower.
SCHEDULE_MIN_SECONDS = env.int("SCHEDULE_MIN_SECONDS", default=900)
EGRESS_PORTS: list[int] = env.list("EGRESS_PORTS", cast=int, default=[80, 443, 8080, 8443])
# What a test of a proxy fetches.
PROXY_TEST_URL = env.str("PROXY_TEST_URL", default="https://example.com/")

# --- notifications -----------------------------------------------------------------
# Who knows whether a website is a client's.
WEBSITE_OWNERSHIP = "monitoring.ownership.owns_website"
# Who knows the figures of a client's day, for summary.daily.
SUMMARY_SOURCE = "monitoring.summaries.figures"
WEBHOOK_ALLOW_HTTP = env.bool("WEBHOOK_ALLOW_HTTP", default=False)
WEBHOOK_TIMEOUT_SECONDS = env.float("WEBHOOK_TIMEOUT_SECONDS", default=15)
# No event goes before its deliveries, which are kept for 30 days.
EVENT_RETENTION_DAYS = env.int_between("EVENT_RETENTION_DAYS", 30, 3650, default=365)
# Pauses before each further try: a list, or the name of one.
WEBHOOK_RETRY_SECONDS = env.pauses(
    "WEBHOOK_RETRY_SECONDS",
    {
        "day": [5, 300, 1800, 7200, 18000, 36000, 36000],
        "hour": [60, 600, 2940],
    },
    default="day",
)

# --- console -----------------------------------------------------------------------
UNFOLD = {
    "SITE_TITLE": "Obsrv",
    "SITE_HEADER": "Obsrv",
    "SITE_SUBHEADER": "Price and stock intelligence",
    "SITE_SYMBOL": "visibility",
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": f"{STATIC_URL}obsrv/icon.svg"}
    ],
    "SHOW_HISTORY": True,
    "STYLES": [f"{STATIC_URL}common/console.css"],
    "SCRIPTS": [f"{STATIC_URL}common/console.js", f"{STATIC_URL}common/countdown.js"],
    "DASHBOARD_CALLBACK": "obsrv.dashboard.add_overview",
    "SIDEBAR": {"show_search": True, "navigation": NAVIGATION},
    "LOGIN": {"form": "accounts.login_form.LoginForm"},
}

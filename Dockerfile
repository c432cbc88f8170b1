# syntax=docker/dockerfile:1
FROM python:3.13-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /app
RUN python -m venv /venv
ENV PATH=/venv/bin:$PATH
COPY requirements.lock ./
RUN pip install --require-virtualenv -r requirements.lock
COPY . .
# The values only let Django start; nothing of them stays in the image.
RUN OBSRV_PRODUCTION=true SECRET_KEY=build STATIC_ROOT=/app/static \
    python manage.py collectstatic --no-input \
    && python -m compileall -q /app

FROM python:3.13-slim
RUN useradd --uid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin obsrv
ENV PATH=/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    OBSRV_PRODUCTION=true \
    OBSRV_READ_ENV_FILE=false \
    STATIC_ROOT=/app/static
WORKDIR /app
COPY --from=build /venv /venv
COPY --from=build /app /app
USER 10001
EXPOSE 8000
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://localhost:8000/health', timeout=4)"]
ENTRYPOINT ["/app/bin/role"]
CMD ["web"]

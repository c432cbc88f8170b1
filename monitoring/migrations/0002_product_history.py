"""History is partitioned by month, which Django cannot express: the table is made by SQL."""

import common.ids
from django.db import migrations, models

CREATE = """
CREATE TABLE monitoring_producthistory (
    id uuid NOT NULL,
    product_id uuid NOT NULL,
    website_id uuid NOT NULL,
    variant_key varchar(255) NOT NULL,
    crawl_timestamp timestamptz NOT NULL,
    price numeric(14, 4),
    list_price numeric(14, 4),
    currency varchar(3) NOT NULL,
    stock_status varchar(20) NOT NULL,
    price_changed boolean NOT NULL,
    stock_changed boolean NOT NULL,
    price_change_pct numeric(14, 4),
    raw_crawl_data jsonb,
    crawl_job_id uuid,
    crawl_task_id uuid,
    page_hash varchar(64) NOT NULL,
    parser_version varchar(20) NOT NULL,
    CONSTRAINT producthistory_pk PRIMARY KEY (id, crawl_timestamp),
    CONSTRAINT producthistory_once UNIQUE (product_id, variant_key, crawl_timestamp)
) PARTITION BY RANGE (crawl_timestamp);
CREATE TABLE monitoring_producthistory_default PARTITION OF monitoring_producthistory DEFAULT;
CREATE INDEX producthistory_website ON monitoring_producthistory (website_id, crawl_timestamp DESC);
CREATE INDEX producthistory_changed ON monitoring_producthistory (crawl_timestamp DESC)
    WHERE price_changed OR stock_changed;
"""


class Migration(migrations.Migration):
    dependencies = [("monitoring", "0001_initial")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(CREATE, "DROP TABLE monitoring_producthistory")
            ],
            state_operations=[
                migrations.CreateModel(
                    name="ProductHistory",
                    fields=[
                        (
                            "id",
                            models.UUIDField(
                                default=common.ids.uuid7,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("product_id", models.UUIDField()),
                        ("website_id", models.UUIDField()),
                        (
                            "variant_key",
                            models.CharField(blank=True, default="", max_length=255),
                        ),
                        ("crawl_timestamp", models.DateTimeField()),
                        (
                            "price",
                            models.DecimalField(
                                decimal_places=4, max_digits=14, null=True
                            ),
                        ),
                        (
                            "list_price",
                            models.DecimalField(
                                decimal_places=4, max_digits=14, null=True
                            ),
                        ),
                        ("currency", models.CharField(blank=True, max_length=3)),
                        (
                            "stock_status",
                            models.CharField(
                                choices=[
                                    ("in_stock", "In Stock"),
                                    ("out_of_stock", "Out Of Stock"),
                                    ("limited_availability", "Limited Availability"),
                                    ("preorder", "Preorder"),
                                    ("backorder", "Backorder"),
                                    ("discontinued", "Discontinued"),
                                    ("unknown", "Unknown"),
                                ],
                                max_length=20,
                            ),
                        ),
                        ("price_changed", models.BooleanField(default=False)),
                        ("stock_changed", models.BooleanField(default=False)),
                        (
                            "price_change_pct",
                            models.DecimalField(
                                decimal_places=4, max_digits=14, null=True
                            ),
                        ),
                        ("raw_crawl_data", models.JSONField(null=True)),
                        ("crawl_job_id", models.UUIDField(null=True)),
                        ("crawl_task_id", models.UUIDField(null=True)),
                        ("page_hash", models.CharField(blank=True, max_length=64)),
                        ("parser_version", models.CharField(blank=True, max_length=20)),
                    ],
                    options={
                        "verbose_name_plural": "product history",
                        "db_table": "monitoring_producthistory",
                        "ordering": ["-crawl_timestamp", "-id"],
                    },
                ),
            ],
        ),
    ]

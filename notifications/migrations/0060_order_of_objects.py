from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("notifications", "0011_channels")]

    operations = [
        migrations.AlterModelOptions(
            name="deliveryattempt", options={"ordering": ["delivery", "attempted_at"]}
        ),
        migrations.AddField(
            model_name="delivery",
            name="object_id",
            field=models.UUIDField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name="delivery",
            name="sequence",
            field=models.BigIntegerField(db_default=0, editable=False),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("status__in", ["pending", "retrying"])),
                fields=["endpoint", "object_id", "sequence"],
                name="delivery_object",
            ),
        ),
    ]

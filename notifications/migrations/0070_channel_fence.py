from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("notifications", "0061_fill_order_of_objects")]

    operations = [
        migrations.AddField(
            model_name="channel",
            name="fence",
            field=models.PositiveIntegerField(db_default=0, default=0, editable=False),
        ),
    ]

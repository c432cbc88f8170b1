from django.db import migrations

# What was accepted is in nobody's way: it keeps its zero.
FILL = """
UPDATE notifications_delivery d
SET object_id = e.object_id, sequence = e.sequence
FROM notifications_event e
WHERE e.id = d.event_id AND d.status <> 'success'
"""


class Migration(migrations.Migration):
    dependencies = [("notifications", "0060_order_of_objects")]

    operations = [migrations.RunSQL(FILL, migrations.RunSQL.noop)]

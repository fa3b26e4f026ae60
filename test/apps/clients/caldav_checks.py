"""Works with calendars over CalDAV, with the library caldav. Prints what it found as JSON.

Arguments: origin, the name of the calendar, the file of the authority that is trusted.
"""
import json
import sys
from datetime import datetime, timedelta, timezone

import caldav

origin, name, authority = sys.argv[1:4]
client = caldav.DAVClient(f"{origin}/", username="test", password="test", ssl_verify_cert=authority)
principal = client.principal()
calendar = principal.make_calendar(name=f"Termine – {name}", cal_id=name)
day = datetime(2026, 5, 4, 9, 0, tzinfo=timezone.utc)


def event(index, text="x"):
    begin = day + timedelta(days=index)
    stamp = "%Y%m%dT%H%M%SZ"
    return "\r\n".join(
        [
            "BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//test//test//EN", "BEGIN:VEVENT",
            f"UID:event-{index}@test", f"DTSTAMP:{day.strftime(stamp)}", f"DTSTART:{begin.strftime(stamp)}",
            f"DTEND:{(begin + timedelta(hours=1)).strftime(stamp)}", f"SUMMARY:Treffen {index} äöü",
            f"DESCRIPTION:{text}", "END:VEVENT", "END:VCALENDAR", "",
        ]
    )


for index in range(40):
    calendar.save_event(event(index, "long " * (index * 50)))
found = calendar.date_search(start=day, end=day + timedelta(days=10), expand=False)
changed = calendar.event_by_uid("event-3@test")
changed.data = changed.data.replace("Treffen 3", "Verschoben 3")
changed.save()
calendar.event_by_uid("event-4@test").delete()
events = calendar.events()
titles = sorted(each.vobject_instance.vevent.summary.value for each in events)
names = [each.name for each in principal.calendars() if str(each.url).rstrip("/").endswith(f"/{name}")]
missing = False
try:
    calendar.event_by_uid("event-4@test")
except caldav.error.NotFoundError:
    missing = True
calendar.delete()
print(
    json.dumps(
        {
            "found": len(found), "events": len(events), "moved": "Verschoben 3 äöü" in titles,
            "missing": missing, "name": names == [f"Termine – {name}"],
        }
    )
)

"""Works with calendars over CalDAV, with the library caldav. Prints what it found as JSON.

Arguments: origin, the user, the name of the calendar, the file of the authority that is trusted.
"""
import json
import sys
import time
from datetime import datetime, timedelta, timezone

import caldav

origin, user, name, authority = sys.argv[1:5]
PAUSE_SECONDS = 0.05
refusals = 0


def until_let_in(work):
    """The library raises an error for a refusal."""
    global refusals
    while True:
        try:
            return work()
        except caldav.error.DAVError as error:
            if "429" not in repr(error):
                raise
            refusals += 1
            time.sleep(PAUSE_SECONDS)


client = caldav.DAVClient(f"{origin}/", username=user, password="test", ssl_verify_cert=authority)
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
    until_let_in(lambda: calendar.save_event(event(index, "long " * (index * 50))))
found = until_let_in(lambda: calendar.date_search(start=day, end=day + timedelta(days=10), expand=False))
changed = until_let_in(lambda: calendar.event_by_uid("event-3@test"))
changed.data = changed.data.replace("Treffen 3", "Verschoben 3")
until_let_in(changed.save)
deleted = until_let_in(lambda: calendar.event_by_uid("event-4@test"))
until_let_in(deleted.delete)
events = until_let_in(calendar.events)
titles = sorted(each.vobject_instance.vevent.summary.value for each in events)
calendars = until_let_in(principal.calendars)
names = [each.name for each in calendars if str(each.url).rstrip("/").endswith(f"/{name}")]
missing = False
try:
    until_let_in(lambda: calendar.event_by_uid("event-4@test"))
except caldav.error.NotFoundError:
    missing = True
until_let_in(calendar.delete)
print(
    json.dumps(
        {
            "found": len(found), "events": len(events), "moved": "Verschoben 3 äöü" in titles,
            "missing": missing, "name": names == [f"Termine – {name}"], "refused": refusals > 0,
        }
    )
)

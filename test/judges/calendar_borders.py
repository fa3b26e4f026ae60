"""Reads [[timezone, unit, epochMs], ...] and prints [[startMs, endMs], ...] of the calendar's windows, by zoneinfo."""

import json
import sys
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def ms(moment):
    return round((moment.astimezone(timezone.utc) - EPOCH) / timedelta(milliseconds=1))


def first(day, zone):
    """The first instant of a date: where local clocks skip its midnight, the one at which they do."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=zone)
    back = midnight.astimezone(timezone.utc).astimezone(zone)
    if back.replace(tzinfo=None) == midnight.replace(tzinfo=None):
        return midnight
    before = ms(midnight.replace(fold=1))
    after = ms(midnight)
    low, high = min(before, after) - 86_400_000, max(before, after) + 86_400_000
    while high - low > 1:
        middle = (low + high) // 2
        local = (EPOCH + timedelta(milliseconds=middle)).astimezone(zone).replace(tzinfo=None)
        if local >= midnight.replace(tzinfo=None):
            high = middle
        else:
            low = middle
    return EPOCH + timedelta(milliseconds=high)


def hour(moment, zone):
    """Local hours, minute by minute: a new one begins where clocks show a whole hour, or have skipped it."""

    def local(at):
        return at.astimezone(zone)

    def begins(at):
        now, before = local(at), local(at - timedelta(minutes=1))
        skipped = now.replace(tzinfo=None) - before.replace(tzinfo=None) > timedelta(minutes=1)
        return now.minute == 0 or (skipped and now.hour != before.hour)

    start = moment.replace(second=0, microsecond=0)
    while not begins(start):
        start -= timedelta(minutes=1)
    end = moment.replace(second=0, microsecond=0) + timedelta(minutes=1)
    while not begins(end):
        end += timedelta(minutes=1)
    return start, end


def window(name, unit, at):
    zone = ZoneInfo(name)
    moment = EPOCH + timedelta(milliseconds=at)
    if unit == "hour":
        return hour(moment, zone)
    day = moment.astimezone(zone).date()
    if unit == "week":
        day -= timedelta(days=day.weekday())
        after = day + timedelta(days=7)
    elif unit == "month":
        day = day.replace(day=1)
        after = (day + timedelta(days=31)).replace(day=1)
    else:
        after = day + timedelta(days=1)
    return first(day, zone), first(after, zone)


print(json.dumps([[ms(border) for border in window(*asked)] for asked in json.load(sys.stdin)]))

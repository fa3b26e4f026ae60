import { subscribe } from 'node:diagnostics_channel'
import { setTimeout as sleep } from 'node:timers/promises'
import { DAVClient } from 'tsdav'
import { Agent, fetch } from 'undici'

// Fills a calendar, reads, changes and synchronizes it with tsdav. Arguments: origin, protocol, the user, the name of the calendar.

const [origin = '', protocol, username = '', name = ''] = process.argv.slice(2)
const EVENTS = 40
const PAUSE_MS = 50

const protocols = new Set()
subscribe('undici:client:connected', ({ socket }) => protocols.add(socket.alpnProtocol || 'http/1.1'))
const dispatcher = new Agent({ allowH2: protocol === 'http2' })
let refusals = 0

/** Asks again for as long as it is refused. */
async function askUntilLetIn(url, options) {
  for (;;) {
    const response = await fetch(url, { ...options, dispatcher })
    if (response.status !== 429) return response
    refusals += 1
    await response.text()
    await sleep(PAUSE_MS)
  }
}

const client = new DAVClient({
  serverUrl: `${origin}/`,
  credentials: { username, password: 'test' },
  authMethod: 'Basic',
  defaultAccountType: 'caldav',
  fetch: askUntilLetIn,
})
await client.login()
const url = `${client.account.homeUrl}${name}/`
await client.makeCalendar({ url, props: { displayname: `Termine – ${name}` } })
const find = async () => (await client.fetchCalendars()).find((each) => each.url === url)
const calendar = await find()

const pad = (number) => String(number).padStart(2, '0')
const textOf = (index) =>
  [
    ...['BEGIN:VCALENDAR', 'VERSION:2.0', 'PRODID:-//test//test//EN', 'BEGIN:VEVENT', `UID:event-${index}`],
    ...['DTSTAMP:20260504T090000Z', `DTSTART:202605${pad(1 + (index % 28))}T090000Z`, 'DURATION:PT1H'],
    ...[`SUMMARY:Treffen ${index} äöü`, `DESCRIPTION:${'long '.repeat(index * 50)}`, 'END:VEVENT'],
    ...['END:VCALENDAR', ''],
  ].join('\r\n')
const statuses = await Promise.all(
  Array.from({ length: EVENTS }, async (_, index) => {
    const object = { calendar, filename: `${index} ü.ics`, iCalString: textOf(index) }
    return (await client.createCalendarObject(object)).status
  }),
)
const timeRange = { start: '2026-05-01T00:00:00Z', end: '2026-05-05T00:00:00Z' }
const found = await client.fetchCalendarObjects({ calendar, timeRange })

const before = await find()
const objects = await client.fetchCalendarObjects({ calendar })
const [changed, deleted] = objects
const data = changed.data.replace('Treffen', 'Verschoben')
const updated = await client.updateCalendarObject({ calendarObject: { ...changed, data } })
// Somebody else's change has come first.
const late = await client.updateCalendarObject({ calendarObject: { ...changed, data } })
const removed = await client.deleteCalendarObject({ calendarObject: deleted })
const after = await client.fetchCalendarObjects({ calendar })
const report = {
  statuses: [...new Set(statuses)],
  name: calendar.displayName,
  found: found.length,
  objects: new Set(objects.map(({ url: each }) => each)).size,
  whole: objects.every(({ data: text }) => /BEGIN:VCALENDAR[^]*Treffen \d+ äöü[^]*END:VCALENDAR/.test(text)),
  updated: updated.ok,
  late: late.status,
  removed: removed.ok,
  left: after.length,
  verschoben: after.filter(({ data: text }) => text.includes('Verschoben')).length,
  isOtherState: before.ctag !== (await find()).ctag,
}
await client.deleteObject({ url })
console.log(
  JSON.stringify({
    ...report,
    isGone: (await find()) === undefined,
    isRefused: refusals > 0,
    protocols: [...protocols],
  }),
)
await dispatcher.close()

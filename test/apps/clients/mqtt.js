import { createHash } from 'node:crypto'
import { once } from 'node:events'
import mqtt from 'mqtt'

// What clients of MQTT see over WebSocket: retained messages, a will, each quality of service, large messages, and a session that is taken
// up again. Prints it as one line of JSON.

const [origin] = process.argv.slice(2)
const url = `${origin.replace('http', 'ws')}/mqtt`
const hash = (value) => createHash('sha256').update(value).digest('hex')
const large = Buffer.alloc(3_000_000, 'position coded ')
const COUNT = 300

const connect = (options = {}) => mqtt.connectAsync(url, { reconnectPeriod: 50, ...options })

const seen = {}
const publisher = await connect()
const [subscriber, session, other] = await Promise.all([
  connect(),
  connect({ clientId: `session-${process.pid}`, clean: false }),
  connect({ will: { topic: 'will', payload: 'gone', qos: 1, retain: false } }),
])

const got = {}
const waiting = new Map()
for (const client of [subscriber, session])
  client.on('message', (topic, payload) => {
    ;(got[topic] ??= []).push(payload)
    waiting.get(topic)?.()
  })
const until = (topic, count) =>
  new Promise((resolve) => {
    const look = () => (got[topic]?.length ?? 0) >= count && resolve(got[topic])
    waiting.set(topic, look)
    look()
  })

await publisher.publishAsync('kept', 'retained', { retain: true, qos: 1 })
await subscriber.subscribeAsync(['kept', 'large', 'will', 'many/0', 'many/1', 'many/2'], { qos: 2 })
await session.subscribeAsync('later', { qos: 1 })
seen.kept = String((await until('kept', 1))[0])
for (const qos of [0, 1, 2]) {
  const topic = `many/${qos}`
  await Promise.all(
    Array.from({ length: COUNT }, (_, i) => publisher.publishAsync(topic, String(i), { qos })),
  )
  seen[topic] = hash((await until(topic, COUNT)).join())
}
seen.ordered = hash(Array.from({ length: COUNT }, (_, i) => String(i)).join())
await publisher.publishAsync('large', large, { qos: 1 })
seen.large = hash((await until('large', 1))[0]) === hash(large)

other.stream.destroy()
seen.will = String((await until('will', 1))[0])

// Messages published while the connection of a session is broken arrive when it is back.
const back = once(session, 'connect')
session.stream.destroy()
await publisher.publishAsync('later', 'while away', { qos: 1 })
await back
seen.later = String((await until('later', 1))[0])

await Promise.all([publisher, subscriber, session, other].map((client) => client.endAsync(true)))
console.log(JSON.stringify(seen))
process.exit(0)

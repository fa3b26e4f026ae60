/**
 * What clients of MQTT see over WebSocket: retained messages, a will, each quality of service, large messages, and a session that is taken
 * up again. Runs in Node and, as its text, in a page.
 *
 * @param {typeof import('mqtt').default} mqtt
 * @param {string} url `wss://127.0.0.1:8443/mqtt`
 */
export async function playMqtt(mqtt, url) {
  const COUNT = 300
  const large = 'position coded '.repeat(200_000)
  const id = `session-${Math.random()}`
  const hash = async (text) => {
    const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
    return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('')
  }
  const connect = (options = {}) => mqtt.connectAsync(url, { reconnectPeriod: 50, ...options })
  const seen = {}
  const publisher = await connect()
  const [subscriber, session, other] = await Promise.all([
    connect(),
    connect({ clientId: id, clean: false }),
    connect({ will: { topic: 'will', payload: 'gone', qos: 1, retain: false } }),
  ])

  const got = {}
  const waiting = new Map()
  for (const client of [subscriber, session])
    client.on('message', (topic, payload) => {
      ;(got[topic] ??= []).push(new TextDecoder().decode(payload))
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
  seen.kept = (await until('kept', 1))[0]
  for (const qos of [0, 1, 2]) {
    const topic = `many/${qos}`
    await Promise.all(
      Array.from({ length: COUNT }, (_, i) => publisher.publishAsync(topic, String(i), { qos })),
    )
    seen[topic] = await hash((await until(topic, COUNT)).join())
  }
  seen.ordered = await hash(Array.from({ length: COUNT }, (_, i) => String(i)).join())
  await publisher.publishAsync('large', large, { qos: 1 })
  seen.large = (await until('large', 1))[0] === large

  other.stream.destroy()
  seen.will = (await until('will', 1))[0]

  // Messages published while the connection of a session is broken arrive when it is back.
  const back = new Promise((resolve) => session.once('connect', resolve))
  session.stream.destroy()
  await publisher.publishAsync('later', 'while away', { qos: 1 })
  await back
  seen.later = (await until('later', 1))[0]

  await Promise.all([publisher, subscriber, session, other].map((client) => client.endAsync(true)))
  return seen
}

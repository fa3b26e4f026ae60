import { subscribe as listen } from 'node:diagnostics_channel'
import { createClient } from 'graphql-sse'
import { Agent, fetch as undiciFetch } from 'undici'

// Queries, and subscriptions side by side whose every event is answered by a mutation. Prints the received messages as JSON.

const [origin, protocol] = process.argv.slice(2)
const url = `${origin}/graphql`
const dispatcher = new Agent({ allowH2: protocol === 'http2', connections: 16 })
const fetchFn = (input, init) => undiciFetch(input, { ...init, dispatcher })
/** The protocol negotiated by ALPN. */
const protocols = new Set()
listen('undici:client:connected', ({ socket }) => protocols.add(socket.alpnProtocol || 'none'))
const client = createClient({ url, fetchFn, retryAttempts: 0 })

async function ask(query, variables) {
  const response = await fetchFn(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query, variables }),
  })
  return response.json()
}

async function subscribe(id, count) {
  const events = []
  const query = 'subscription ($id: ID!, $count: Int!) { events(id: $id, count: $count) }'
  for await (const { data } of client.iterate({ query, variables: { id, count } })) {
    events.push(data.events)
    await ask('mutation ($id: ID!) { next(id: $id) }', { id })
  }
  return events
}

/** Leaves after the first event, which ends the subscription at the server. */
async function leave(id) {
  const query = 'subscription ($id: ID!) { events(id: $id, count: 5) }'
  for await (const { data } of client.iterate({ query, variables: { id } })) return data.events
}

const text = 'ü'.repeat(20_000)
const echo = await ask('query ($text: String!) { echo(text: $text) }', { text })
const wrong = await ask('{ nothing }')
const streams = await Promise.all(Array.from({ length: 8 }, (_, index) => subscribe(`s${index}`, 20)))
const left = await leave('left')
console.log(
  JSON.stringify({ echo: echo.data.echo === text, wrong, streams, left, protocols: [...protocols] }),
)
process.exit(0)

// Requests to the gateway. The token is sent in a header, never in the URL, which appears in histories and logs.

const TOKEN = 'sluice-admin-token'
/** Time limit without an event. The gateway sends an event or a comment twice a second. */
const SILENCE_MS = 5_000

let token = sessionStorage.getItem(TOKEN) ?? ''
let lastId = ''

export class Unauthorized extends Error {}

export const hasToken = () => token !== ''

export function setToken(text) {
  token = text
  if (text === '') sessionStorage.removeItem(TOKEN)
  else sessionStorage.setItem(TOKEN, text)
}

/** @param body sent as JSON with POST; undefined for GET */
export async function ask(path, body, options = {}) {
  const headers = { ...options.headers }
  if (token !== '') headers['Authorization'] = `Bearer ${token}`
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  const response = await fetch(path, {
    method: body === undefined ? 'GET' : 'POST',
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
    cache: 'no-store',
    credentials: 'omit',
    redirect: 'error',
    signal: options.signal,
  })
  if (response.ok) return response
  const told = await response.json().catch(() => ({}))
  const text = told.error ?? `The gateway answers ${response.status}`
  if (response.status === 401) throw new Unauthorized(text)
  throw new Error(text)
}

/**
 * Follows the events until they end. `EventSource` is not used, because it cannot send a header.
 *
 * @param take gets the name of an event and its data
 */
export async function follow(take) {
  const given = new AbortController()
  let silence
  const heard = () => {
    clearTimeout(silence)
    silence = setTimeout(() => given.abort(), SILENCE_MS)
  }
  try {
    heard()
    const headers = lastId === '' ? {} : { 'Last-Event-ID': lastId }
    const response = await ask('api/events', undefined, { headers, signal: given.signal })
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      heard()
      text += value
      const events = text.split('\n\n')
      text = events.pop() ?? ''
      for (const event of events) {
        const fields = fieldsOf(event)
        if (!fields.has('event')) continue
        lastId = fields.get('id') ?? lastId
        await take(fields.get('event'), JSON.parse(fields.get('data')))
      }
    }
  } finally {
    clearTimeout(silence)
    given.abort()
  }
}

function fieldsOf(event) {
  const fields = new Map()
  for (const line of event.split('\n')) {
    const colon = line.indexOf(': ')
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 2))
  }
  return fields
}

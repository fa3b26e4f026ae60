import { at, make } from './dom.js'
import { describeLimit, formatNumber, formatSeconds } from './format.js'
import { ask, Unauthorized } from './gateway.js'

// Explains what the gateway would do with a request now (`POST /api/explain`). Nothing is sent to the backend, and nothing is counted.

let asked = 0

at('explain-form').addEventListener('submit', async (event) => {
  event.preventDefault()
  const number = ++asked
  let shown
  try {
    shown = describe(await (await ask('api/explain', readForm())).json())
  } catch (error) {
    if (error instanceof Unauthorized)
      dispatchEvent(new CustomEvent('unauthorized', { detail: error.message }))
    shown = [make('p', { class: 'bad' }, error instanceof TypeError ? 'No answer' : error.message)]
  }
  if (number === asked) at('explained').replaceChildren(...shown)
})

function readForm() {
  const [target, ip, host] = ['target', 'ip', 'host'].map((name) => at(`explain-${name}`).value.trim())
  /** A `Map`, because `constructor` is a name of a header too. */
  const headers = new Map()
  for (const line of at('explain-headers').value.split('\n')) {
    if (line.trim() === '') continue
    const colon = line.indexOf(':')
    if (colon < 1) throw new Error(`A header needs a name, a colon and a value: ${line.trim()}`)
    const name = line.slice(0, colon).trim()
    headers.set(name, [...(headers.get(name) ?? []), line.slice(colon + 1).trim()])
  }
  const body = at('explain-body').value
  return {
    method: at('explain-method').value.trim(),
    target,
    ...(ip !== '' && { ip }),
    ...(host !== '' && { host }),
    ...(headers.size > 0 && { headers: Object.fromEntries(headers) }),
    ...(body !== '' && { body }),
  }
}

function describe(explained) {
  const { client, path, rules } = explained
  const [text, kind] = outcomeOf(explained)
  const counts = client.counts === client.address ? '' : `, which counts as ${client.counts}`
  const about = `From ${client.address}${counts}: ${client.why}.${path === null ? '' : ` Path: ${path}`}`
  const near = rules.filter((rule) => !rule.counts && rule.near)
  const counting = rules.filter((rule) => rule.counts)
  const others = rules.length - near.length - counting.length
  return [
    make('p', { class: kind }, text),
    make('p', {}, about),
    ...(counting.length > 0 ? [tableOf(counting)] : []),
    ...near.map(({ name, why }) => make('p', {}, `Nearly ${name}: ${why ?? ''}`)),
    ...(others > 0
      ? [make('p', { class: 'quiet' }, `${formatNumber(others)} other rules do not match.`)]
      : []),
  ]
}

function outcomeOf({ outcome, status, why, ban, refusedBy, routedBy, rules }) {
  if (outcome === 'forwarded') return ['It would pass: no rule counts it.', 'good']
  if (outcome === 'limited') {
    if (refusedBy !== null) return [`It would be refused now, by ${refusedBy}.`, 'bad']
    if (routedBy !== null) {
      const { over } = rules.find(({ name }) => name === routedBy)
      return [`It would be sent to route ${over.route} now, by ${routedBy}.`, 'warn']
    }
    const number = rules.filter((rule) => rule.counts).length
    return [`It would pass, counted by ${number === 1 ? '1 rule' : `${number} rules`}.`, 'good']
  }
  const reason = ban?.reason ? `: ${ban.reason}` : ''
  if (ban)
    return [
      `It would be answered ${status}: banned by ${ban.by}${reason}, for ${formatSeconds(ban.expiresSeconds)}.`,
      'bad',
    ]
  return [`It would be answered ${status} by the gateway: ${why ?? ''}.`, outcome === 'answered' ? '' : 'bad']
}

function tableOf(rules) {
  const names = ['Rule', 'Limit', 'Used', 'Left', 'Resets in', 'Counted by']
  const head = make('tr', {}, ...names.map((name) => make('th', { scope: 'col' }, name)))
  const rows = rules.flatMap((rule) => {
    const key = rule.key.map(({ part, values }) => `${part} ${values.join(' or ')}`).join(', ')
    const states = rule.states.length === 0 ? [{}] : rule.states
    return states.map(({ limit, used, remaining, resetSeconds, label }) => {
      const texts = [
        describeLimit({ ...rule, requests: limit ?? rule.requests }),
        numberOf(used),
        numberOf(remaining),
        typeof resetSeconds === 'number' ? formatSeconds(resetSeconds) : '',
        label ? `${label} (${key})` : `${key}${howCounted(rule)}`,
      ]
      const cells = texts.map((text, index) => make('td', { 'data-name': names[index + 1] }, text))
      return make('tr', {}, make('th', { scope: 'row' }, rule.name), ...cells)
    })
  })
  const table = make('table', {}, make('thead', {}, head), make('tbody', {}, ...rows))
  return make(
    'div',
    { class: 'wide', role: 'group', 'aria-label': 'Rules that count it', tabindex: '0' },
    table,
  )
}

/** Describes whether the rule counts by a device, or why not, and whether the request may wait. */
function howCounted({ override, why, waitingFull }) {
  const counted = override === undefined && why ? `; ${why}` : ''
  return waitingFull ? `${counted}; no place to wait is free` : counted
}

function numberOf(value) {
  return typeof value === 'number' ? formatNumber(value) : 'unknown'
}

// Made once, because making a formatter takes longer than formatting a row.
const numbers = new Intl.NumberFormat('en')
const times = new Intl.DateTimeFormat([], { dateStyle: 'medium', timeStyle: 'short' })

export const formatNumber = (count) => numbers.format(count)

export const formatTime = (time) => times.format(new Date(time))

export function formatRate(rate) {
  if (rate === 0) return '0'
  return rate < 10 ? rate.toFixed(1) : formatNumber(Math.round(rate))
}

export function formatSeconds(seconds) {
  const whole = Math.ceil(seconds)
  const days = Math.floor(whole / 86_400)
  const hours = Math.floor((whole % 86_400) / 3600)
  const minutes = Math.floor((whole % 3600) / 60)
  const parts = [
    [days, 'd'],
    [hours, 'h'],
    [minutes, 'min'],
    [whole % 60, 's'],
  ].filter(([count]) => count > 0)
  return (
    parts
      .slice(0, 2)
      .map(([count, unit]) => `${count} ${unit}`)
      .join(' ') || '0 s'
  )
}

/** Names a client: addresses as they are, other clients by their hash. */
export function nameOf(client) {
  if (client.global === true) return 'all clients together'
  return String(client.ip ?? client.id ?? '')
}

/** Parses a client as the command line does: an address, `PART=VALUE` for each part of a key, or the hash that a list shows. */
export function readClient(text) {
  if (/^h:[\w-]{22}$/.test(text)) return { id: text }
  if (text === 'global') return { global: true }
  if (!text.includes('=')) return text
  return Object.fromEntries(
    text.split(/\s+/).map((part) => [part.slice(0, part.indexOf('=')), part.slice(part.indexOf('=') + 1)]),
  )
}

export function describeLimit(limit) {
  if (!limit) return ''
  const { requests, plans = {}, windowSeconds, calendar, algorithm, mode, over } = limit
  const window = calendar ? `a ${calendar.unit} (${calendar.timezone})` : formatSeconds(windowSeconds)
  const allowed = algorithm === 'concurrency' ? `${requests} at once` : `${requests} in ${window}`
  const names = Object.entries(plans).map(([name, quota]) => `${name} ${quota}`)
  const planned = names.length > 0 ? `${allowed} (plans: ${names.join(', ')})` : allowed
  const then =
    over && (over.route === undefined ? `wait up to ${over.delayMs / 1000} s` : `to route ${over.route}`)
  const what = over ? `${planned}, then ${then}` : planned
  return mode === 'shadow' ? `${what}, shadow` : what
}

const partOf = (part) => (typeof part === 'string' ? part : part.first.map(partOf).join(' or '))

/** Describes a condition such as `{header: {authorization: 'absent'}}` in words. */
function conditionOf(condition) {
  return wordsOf(condition).join(' ')
}

function wordsOf(value) {
  if (Array.isArray(value)) return [value.map((each) => wordsOf(each).join(' ')).join(' or ')]
  if (typeof value !== 'object' || value === null) return [String(value)]
  return Object.entries(value).flatMap(([name, of]) => [name, ...wordsOf(of)])
}

/** Describes which requests a rule counts, and by what. */
export function describeMatch(limit) {
  if (!limit) return ''
  const { match = [], except = [], hosts = [], when = [], unless = [], key = ['ip'] } = limit
  const listOf = (list) =>
    (list.length > 3 ? [...list.slice(0, 3), `${list.length - 3} more`] : list).join(', ')
  const parts = key.map(partOf).join(' and ')
  return [
    listOf(match),
    ...(except.length > 0 ? [`except ${listOf(except)}`] : []),
    ...(hosts.length > 0 ? [`at ${listOf(hosts)}`] : []),
    ...(when.length > 0 ? [`when ${listOf(when.map(conditionOf))}`] : []),
    ...(unless.length > 0 ? [`unless ${listOf(unless.map(conditionOf))}`] : []),
    parts === 'global' ? 'all clients together' : `by ${parts === 'ip' ? 'address' : parts}`,
  ].join(' · ')
}

import { Agent as HttpAgent, get as getHttp } from 'node:http'
import { Agent as HttpsAgent, get as getHttps } from 'node:https'
import { parseArgs } from 'node:util'
import type { Round } from './rounds.ts'

// A process of normal clients, all at one address. They send requests at a fixed rate, whether or not these succeed: nine of ten over kept
// connections, the tenth over a new one. Prints one line of JSON a second, a `Round`, until it is killed.

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    path: { type: 'string', default: '/' },
    from: { type: 'string', default: '127.0.0.9' },
    'per-second': { type: 'string', default: '50' },
    /** Maximum number of kept connections. */
    connections: { type: 'string', default: '20' },
    tls: { type: 'boolean', default: false },
  },
})
const patienceMs = 5_000
const tickMs = 10
const newConnectionEvery = 10
const options = {
  host: '127.0.0.1',
  port: Number(values.port),
  path: values.path,
  localAddress: values.from,
  timeout: patienceMs,
  rejectUnauthorized: false,
}
const get = values.tls ? getHttps : getHttp
const Agent = values.tls ? HttpsAgent : HttpAgent
const keeping = new Agent({ keepAlive: true, maxSockets: Number(values.connections) })

let latenciesMs: number[] = []
let failures: Record<string, number> = {}

function ask(keep: boolean): void {
  const startedMs = performance.now()
  let over = false
  const end = (failure?: string): void => {
    if (over) return
    over = true
    clearTimeout(timer)
    if (failure === undefined) latenciesMs.push(performance.now() - startedMs)
    else failures[failure] = (failures[failure] ?? 0) + 1
  }
  // `agent: false` opens a connection for this request, and closes it after the response.
  const request = get({ ...options, agent: keep ? keeping : false }, (response) => {
    response.resume()
    response.on('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message))
    response.on('end', () => end(response.statusCode === 200 ? undefined : String(response.statusCode)))
  })
  request.on('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message))
  const timer = setTimeout(() => {
    end(`no answer in ${patienceMs / 1_000} s`)
    request.destroy()
  }, patienceMs)
}

const perTick = (Number(values['per-second']) * tickMs) / 1_000
const beganMs = performance.now()
let asked = 0
setInterval(() => {
  const due = ((performance.now() - beganMs) / tickMs) * perTick
  for (; asked < due; asked++) ask(asked % newConnectionEvery !== 0)
}, tickMs)

setInterval(() => {
  const round: Round = { latenciesMs, failures }
  process.stdout.write(`${JSON.stringify(round)}\n`)
  latenciesMs = []
  failures = {}
}, 1_000)

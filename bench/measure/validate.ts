import { request as httpRequest } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { request as httpsRequest } from 'node:https'
import { readFileSync } from 'node:fs'
import { authorityFile } from '../../test/support/network/certificates.ts'
import type { Counters } from './counters.ts'
import type { Scenario } from '../scenarios.ts'
import type { Subject } from '../subjects/subject.ts'
import type { Loaded } from './load.ts'

type Reply = { readonly status: number; readonly body: string }

const checks = 3
const authority = readFileSync(authorityFile)
const answerTimeoutMs = 5_000

/** Rejects if a subject does not do the work for which it is about to be timed. */
export async function validateBefore(scenario: Scenario, subject: Subject, port: number): Promise<number> {
  const label = `${subject.name}, ${scenario.name}`
  const { method, path, uploadBytes, protocol } = scenario
  const status = expectedStatus(scenario, subject)
  const upload = Buffer.alloc(uploadBytes, 'b')

  // Uses up the quota of one, and the first requests that a leaky bucket allows.
  if (status === 429) for (let i = 0; i < checks; i++) await ask({ port, method, path, protocol }, upload)

  for (let i = 0; i < checks; i++) {
    const reply = await ask({ port, method, path, protocol }, upload)
    if (reply.status !== status) throw new Error(`${label}: status ${reply.status} instead of ${status}`)
    if (scenario.body !== undefined && reply.body !== scenario.body)
      throw new Error(`${label}: another body than the backend's: ${reply.body.slice(0, 200)}`)
  }
  if (subject.kind !== 'floor') {
    const { body } = await ask({ port, method: 'GET', path: '/fields', protocol }, Buffer.alloc(0))
    if (body !== `127.0.0.1 ${protocol ? 'https' : 'http'}`)
      throw new Error(`${label}: forwarded fields are not as usual: ${body}`)
  }
  return checks
}

/**
 * Rejects if a load was not answered or not counted as expected.
 *
 * @param loads since the counters were emptied
 * @param connections of each load, whose last requests may be counted although wrk does not report them
 */
export async function validateAfter(
  scenario: Scenario,
  subject: Subject,
  loads: readonly Loaded[],
  counters: Counters,
  connections: number,
): Promise<void> {
  const label = `${subject.name}, ${scenario.name}`
  const refusals = expectedStatus(scenario, subject) === 429
  for (const { requests, notOk } of loads) {
    if (notOk !== (refusals ? requests : 0)) throw new Error(`${label}: ${notOk} of ${requests} not 2xx`)
  }
  const { countedClients, store } = scenario
  if (countedClients === undefined || store !== 'redis' || subject.kind === 'system') return

  const answered = loads.reduce((sum, { requests }) => sum + requests, checks)
  const unanswered = loads.length * connections
  const found = await counters.read()
  if (found.requests < answered || found.requests > answered + unanswered)
    throw new Error(`${label}: ${found.requests} counted of ${answered} to ${answered + unanswered}`)
  // Each load begins with the same clients. The client of the checks before it is another one.
  const clients = Math.min(countedClients, Math.max(...loads.map(({ requests }) => requests)))
  if (found.clients < clients || found.clients > countedClients + 1)
    throw new Error(`${label}: counted as ${found.clients} clients instead of ${clients}`)
}

function expectedStatus({ status }: Scenario, { kind }: Subject): number {
  return kind === 'floor' ? 200 : status
}

type Question = Pick<Scenario, 'method' | 'path'> & {
  readonly protocol: Scenario['protocol'] | undefined
  readonly port: number
}

function ask({ port, method, path, protocol }: Question, body: Buffer): Promise<Reply> {
  return protocol === 'h2'
    ? askByHttp2(port, method, path)
    : askByHttp1({ port, method, path, protocol }, body)
}

function askByHttp2(port: number, method: string, path: string): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const session = connectHttp2(`https://127.0.0.1:${port}`, { ca: authority })
    session.setTimeout(answerTimeoutMs, () => session.destroy(new Error(`no answer to ${method} ${path}`)))
    session.on('error', reject)
    const stream = session.request({ ':method': method, ':path': path })
    stream.on('error', reject)
    stream.on('response', ({ ':status': status = 0 }) => {
      let text = ''
      stream.setEncoding('latin1')
      stream.on('data', (piece: string) => (text += piece))
      stream.on('end', () => {
        session.close()
        resolve({ status, body: text })
      })
    })
  })
}

function askByHttp1({ port, method, path, protocol }: Question, body: Buffer): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const headers = body.length > 0 ? { 'content-length': body.length } : {}
    const options = { host: '127.0.0.1', port, method, path, headers, agent: false } as const
    const request = protocol ? httpsRequest({ ...options, ca: authority }) : httpRequest(options)
    request.setTimeout(answerTimeoutMs, () => request.destroy(new Error(`no answer to ${method} ${path}`)))
    request.on('error', reject)
    request.on('response', (response) => {
      let text = ''
      response.setEncoding('latin1')
      response.on('data', (piece: string) => (text += piece))
      response.on('error', reject)
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: text }))
    })
    request.end(body)
  })
}

import type { IncomingMessage, ServerResponse } from 'node:http'
import { startBackend } from './backend.ts'
import { wallClockMs } from '../calendar/wall-clock.ts'

type Decision = {
  readonly id: number
  readonly scope: string
  readonly value: string
  readonly type: string
  readonly madeMs: number
  untilMs: number
}

export type LocalApi = {
  readonly url: string
  readonly key: string
  /** Adds a decision, as `cscli decisions add` does. */
  add(value: string, more?: { scope?: string; type?: string; forMs?: number }): void
  /** Removes a decision as `cscli decisions delete` does, which ends it now. */
  remove(value: string): void
  /** Forgets all decisions, as if the API had a new database. */
  forget(): void
  /** Answers with this status from now on; undefined restores normal answers. */
  fail(status: number | undefined): void
  /** Truncates the answers. */
  cut(isCut: boolean): void
  /** The query of each poll. */
  readonly polls: readonly string[]
}

/**
 * A local API like CrowdSec's, with its stream of decisions: with `startup=true` it sends all decisions, otherwise the changes since the
 * last poll. Lists without a decision are null, durations have Go's format, and only the requested scopes are included.
 */
export async function startLocalApi(key = 'bouncer-key'): Promise<LocalApi> {
  let decisions: Decision[] = []
  let lastPollMs = 0
  let status: number | undefined
  let isCut = false
  let id = 0
  const polls: string[] = []

  function answer(request: IncomingMessage, response: ServerResponse): void {
    const { pathname, search, searchParams } = new URL(request.url ?? '', 'http://local')
    const reply = (code: number, body: unknown): void => {
      const text = JSON.stringify(body)
      response.writeHead(code, { 'content-type': 'application/json; charset=utf-8' })
      response.end(isCut ? text.slice(0, -10) : text)
    }
    if (request.headers['x-api-key'] !== key) return reply(403, { message: 'access forbidden' })
    if (status !== undefined) return reply(status, { message: 'no such thing' })
    if (request.method !== 'GET' || pathname !== '/v1/decisions/stream') return reply(404, {})
    if (request.headers['user-agent']?.split('/').length !== 2)
      return reply(403, { message: 'bad user agent' })
    polls.push(search)
    const scopes = (searchParams.get('scopes') ?? 'ip,range').split(',')
    const nowMs = wallClockMs()
    const isStartup = searchParams.get('startup') === 'true'
    const asked = decisions.filter(({ scope }) => scopes.includes(scope.toLowerCase()))
    const sent = (some: readonly Decision[]): unknown =>
      some.length === 0
        ? null
        : some.map(({ id, scope, value, type, untilMs }) => ({
            duration: goDuration(untilMs - nowMs),
            id,
            origin: 'cscli',
            scenario: "manual 'ban' from 'localhost'",
            scope,
            type,
            uuid: '9d3a2f2e-0000-4000-8000-000000000000',
            value,
          }))
    const active = asked.filter(
      ({ untilMs, madeMs }) => untilMs > nowMs && (isStartup || madeMs >= lastPollMs),
    )
    const ended = asked.filter(
      ({ untilMs, value }) =>
        untilMs <= nowMs &&
        (isStartup || untilMs >= lastPollMs) &&
        !asked.some((other) => other.value === value && other.untilMs > nowMs),
    )
    lastPollMs = nowMs
    reply(200, { deleted: sent(ended), new: sent(active) })
  }

  const { url } = await startBackend(answer)
  return {
    url,
    key,
    polls,
    add(value, { scope = value.includes('/') ? 'Range' : 'Ip', type = 'ban', forMs = 14_400_000 } = {}) {
      const madeMs = wallClockMs()
      decisions.push({ id: ++id, scope, value, type, madeMs, untilMs: madeMs + forMs })
    },
    remove(value) {
      for (const decision of decisions) if (decision.value === value) decision.untilMs = wallClockMs()
    },
    forget: () => (decisions = []),
    fail: (code) => (status = code),
    cut: (cut) => (isCut = cut),
  }
}

/** Writes a duration as Go's `Duration.String` does. */
export function goDuration(ms: number): string {
  const sign = ms < 0 ? '-' : ''
  const whole = Math.abs(ms)
  if (whole < 1000) return `${sign}${whole}ms`
  const [h, m] = [Math.floor(whole / 3_600_000), Math.floor(whole / 60_000) % 60]
  const s = Number(((whole % 60_000) / 1000).toFixed(6))
  return `${sign}${h > 0 ? `${h}h` : ''}${h > 0 || m > 0 ? `${m}m` : ''}${s}s`
}

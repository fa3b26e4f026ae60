import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { linesOf } from '../../proxy/cli/top/lines.ts'
import { makeSnapshot, readCounts, type Snapshot } from '../../proxy/cli/top/snapshot.ts'
import { startBackend } from '../support/http/backend.ts'
import { startGateway, type GatewayProcess } from '../support/gateway/gateway.ts'
import { runHosted } from '../support/gateway/hosted-command.ts'
import { CLOSED_PORT, freePort } from '../support/network/ports.ts'
import { commandOf, spawnNode } from '../support/gateway/process.ts'
import { directoryWith } from '../support/gateway/settings.ts'
import { eventually } from '../support/wait/eventually.ts'
import { passes } from '../support/wait/passes.ts'

const token = 'of-the-operators'
const table = `limits:
  - { name: login, match: POST /login, requests: 2, window: 15m }
  - { name: api, match: GET /api, requests: 500, window: 15m }
`
let env: Record<string, string>
let gateway: GatewayProcess

beforeAll(async () => {
  const backend = await startBackend()
  const file = join(directoryWith(table), 'sluice.yaml')
  const ADMIN_PORT = String(await freePort())
  env = { CONFIG_FILE: file, UPSTREAM_URL: backend.url, ADMIN_TOKEN: token, ADMIN_PORT }
  gateway = await startGateway(env)
})

/** Starts `sluice top` on a terminal, for the gateway with this admin listener. */
function startOnTerminal(url: string): ChildProcessWithoutNullStreams {
  const { args, env: usual } = commandOf('proxy/cli/main.ts')
  const command = `${process.execPath} ${args.join(' ')} top --admin ${url} --interval 0.5`
  return spawn('script', ['-qefc', command, '/dev/null'], {
    env: { ...usual, PATH: process.env['PATH'], TERM: 'xterm', ADMIN_TOKEN: token, NO_COLOR: '1' },
  })
}

const admin = (): string => `http://127.0.0.1:${env['ADMIN_PORT'] ?? ''}`

describe('top', () => {
  test('sluice top prints one snapshot if standard output is not a terminal', async () => {
    const from = '127.0.0.5'
    const asked = runHosted(['top', '--admin', admin()], { ADMIN_TOKEN: token })
    const finished: unknown[] = []
    void asked.then((result) => finished.push(result))
    while (finished.length === 0) {
      await gateway.send('POST', '/login', { from })
      await gateway.send('GET', '/api', { from })
      await passes(50)
    }
    const { status, stdout } = await asked
    expect(status).toBe(0)
    expect(stdout).toMatch(/^sluice http:\/\/127\.0\.0\.1:\d+ {2}[\d:]{8} UTC {2}ready {2}up /)
    expect(stdout).toMatch(
      /^store memory {2}backend available {2}table \w+ {2}\d+ connections {2}[\d.]+ requests\/s$/m,
    )
    expect(stdout).toMatch(
      /^ALLOWED\/S +REFUSED\/S +SHADOW\/S +RULE\n +0[.\d]* +(?!0 )[.\d]+ +0 +login\n +(?!0 )[.\d]+ +0 +0 +api$/m,
    )
    expect(stdout).toMatch(/^REFUSED +RESETS IN +RULE +CLIENT\n +\d+ +14m \d+s +login +127\.0\.0\.5$/m)
  })

  test('continues when the gateway is restarted', async () => {
    const args = ['top', '--admin', admin(), '--json', '--interval', '0.5']
    const top = spawnNode('proxy/cli/main.ts', { ADMIN_TOKEN: token }, args)
    const snapshots = (): Snapshot[] =>
      top
        .stdout()
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as Snapshot)
    const until = async (isSeen: (snapshot: Snapshot) => boolean, from = 0): Promise<void> => {
      await eventually('the snapshot has come', () => snapshots().slice(from).some(isSeen))
    }
    await until(({ status, requests }) => status?.['status'] === 'ready' && requests !== null)
    await gateway.process.stop('SIGKILL')
    await until(({ away }) => away?.includes('ECONNREFUSED') === true)
    const seen = snapshots().length
    gateway = await startGateway(env)
    await until(({ away }) => away === undefined, seen)
    expect(await top.stop()).toBe(128 + 15)
  })

  test('draws on a terminal until q is pressed, and gives it back', async () => {
    const top = startOnTerminal(admin())
    let shown = ''
    const ended = new Promise((resolve) => top.once('close', resolve))
    const drawn = new Promise<void>((resolve) => {
      top.stdout.setEncoding('utf8').on('data', (text: string) => {
        shown += text
        if (shown.split('RESETS IN').length > 2) resolve()
      })
    })
    await drawn
    top.stdin.write('q')
    expect(await ended).toBe(0)
    expect(shown.startsWith('\u001b[?1049h\u001b[?25l')).toBe(true)
    expect(shown).toContain('\u001b[?25h\u001b[?1049l')
    // The screen is overwritten, never cleared first, and without colours.
    expect(shown).not.toContain('\u001b[2J')
    expect(shown).not.toMatch(/\u001b\[[\d;]*m/)
    expect(stripVTControlCharacters(shown)).toContain('sluice http')
  })

  test('top ends at once when q is pressed while the gateway does not answer', async () => {
    const silent = await startBackend((_, response) => {
      if (silent.seen.length === 1) response.end('event: status\ndata: {"at":1}\n\n')
    })
    const top = startOnTerminal(silent.url)
    const ended = new Promise((resolve) => top.once('close', resolve))
    await eventually('it asks again', () => silent.seen.length === 2)
    top.stdin.write('q')
    // If `q` did not end it, it would wait 10 s for the response.
    expect(await Promise.race([ended, passes(6_000)])).toBe(0)
  })

  test('top is negative where nothing answers, or the token is wrong', async () => {
    const away = await runHosted(['top', '--admin', `http://127.0.0.1:${CLOSED_PORT}`])
    expect(away).toMatchObject({ status: 1, stdout: '' })
    const wrong = await runHosted(['top', '--admin', admin()], { ADMIN_TOKEN: 'of-another-gateway' })
    expect(wrong).toMatchObject({ status: 1, stdout: '' })
    expect(wrong.stderr).toContain('401')
    expect(await runHosted(['top', '--interval', '0'])).toMatchObject({ status: 2, stdout: '' })
  })
})

describe('the lines', () => {
  const event = (count: number, clients: object[]): Record<string, unknown> => ({
    at: 10_000 + count * 10,
    status: { status: 'ready' },
    requests: [0, 0, count],
    decisions: [
      ['a', { allowed: count, refused: 0 }],
      ['b', { allowed: 0, refused: count, unavailable: count }],
    ],
    limited: { clients },
  })
  const hostile = { policy: 'a', client: { 'cookie:x': '\u001b[2J\u202e\r\n' }, refusals: 1, resetSeconds: 1 }

  test('the lines of top have the rules with the most refusals first, and nothing that moves a cursor', () => {
    const snapshot = makeSnapshot('http://a', event(200, [hostile]), readCounts(event(100, [])))
    expect(snapshot.rules).toEqual([
      { name: 'b', allowed: 0, refused: 200, shadow: 0 },
      { name: 'a', allowed: 100, refused: 0, shadow: 0 },
    ])
    const lines = linesOf(snapshot)
    expect(lines.join('')).not.toMatch(/\p{C}/u)
    expect(lines.at(-1)).toContain('\\u001b[2J\\u202e')
  })

  test('the lines of top are as many as there is room for, with both tables', () => {
    const clients = Array.from({ length: 50 }, () => hostile)
    const lines = linesOf(makeSnapshot('http://a', event(2, clients), undefined), 12)
    expect(lines).toHaveLength(12)
    expect(lines.filter((line) => /^ +\d+ +\d+ +\d+ +b$/.test(line))).toHaveLength(1)
    expect(lines.filter((line) => line.includes('202e'))).toHaveLength(4)
  })

  test('names of any length leave the figures of their lines on the screen', () => {
    const client = { ...hostile, policy: 'p'.repeat(64), label: 'l'.repeat(200), refusals: 1234567 }
    const lines = linesOf(makeSnapshot('http://a', event(200, [client]), readCounts(event(100, []))))
    expect(lines.at(-1)?.slice(0, 40)).toMatch(/^1,234,567 +1s +p+$/)
  })

  test('top shows each problem of the gateway on a line of its own', () => {
    const servers = { available: 2, ejected: 0, unhealthy: 0 }
    const well = { status: 'ready', limitsEnabled: true, workers: 2, servers }
    const linesWith = (fields: Record<string, unknown>): string[] => {
      const [, , ...lines] = linesOf(makeSnapshot('http://a', { ...event(1, []), ...fields }, undefined))
      return lines.slice(0, lines.indexOf(''))
    }
    const config = { lastReadSucceeded: true }
    expect(linesWith({ status: well, workersAnswering: 2, config })).toEqual([])
    expect(
      linesWith({
        status: { ...well, limitsEnabled: false, servers: { available: 1, ejected: 1, unhealthy: 2 } },
        workersAnswering: 1,
        config: { lastReadSucceeded: false },
      }),
    ).toEqual([
      'rate limiting is off',
      'the last reload was refused: the previous limits are in effect',
      '1 of 2 workers answer',
      '3 of 4 servers are out of use',
    ])
  })

  test('no rate is shown over a restart of the gateway', () => {
    const { requests, rules } = makeSnapshot('http://a', event(5, []), readCounts(event(100, [])))
    expect([requests, rules[0]?.refused]).toEqual([null, 0])
  })
})

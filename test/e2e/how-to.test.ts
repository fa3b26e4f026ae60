import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { CLOSED_PORT } from '../support/network/ports.ts'
import { runHosted } from '../support/gateway/hosted-command.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { stepsOf, withoutChance } from '../support/run/docs.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

const limits = `limits:
  - { name: login, match: POST /login, requests: 5, window: 15m }
`
const api = `  - { name: api, match: GET /api, requests: 10, window: 1m }
`
const byKey = `  - { name: api, match: GET /api, key: 'header:x-api-key', requests: 10, window: 1m }
`

/** The old and the new table of the page on rollouts. */
const before = 'limits:\n  - { name: login, match: POST /login, requests: 30, window: 15m }\n'
const rolledOut = stepsOf('docs/how-to/try-and-roll-out-a-limit.md')
  .flatMap((step) => (step.kind === 'file' ? [step.text] : []))
  .join('')

/** A gateway in the state in which a page begins. */
type Scene = {
  readonly gateway: HostedGateway
  /** The folder with the page's files. */
  readonly folder: string
  readonly sluice: (...args: readonly string[]) => Promise<string>
}

type Page = {
  /** `sluice.yaml` before the first step; not needed by pages that show the whole file. */
  readonly table?: string
  /** The status of the backend's responses, 200 unless given. */
  readonly answer?: number
  readonly env?: () => Promise<Record<string, string>>
  /** Sends requests and writes files before the first step. */
  readonly prepare?: (scene: Scene) => Promise<void>
  /** Functions to call before each attempt of a command, by the beginning of the command. */
  readonly beforeCommand?: Readonly<Record<string, (scene: Scene, times: number) => unknown>>
}

// Connections are reused: a new one for each of two thousand requests would take most of the time.
const agent = new Agent({ keepAlive: true, maxSockets: 16 })
afterAll(() => agent.destroy())

async function send({ gateway }: Scene, times: number, target: string, client: string): Promise<void> {
  const [method = '', path = ''] = target.split(' ')
  for (let sent = 0; sent < times; sent++)
    await gateway.send(method, path, { headers: { 'x-forwarded-for': client }, agent })
}

const logLine = (path: string, method: string, at: string, ip: string): string =>
  `${ip} - - [04/May/2026:09:${at} +0000] "${method} ${path} HTTP/1.1" 200 512 "-" "curl/8.5"\n`

const pages: Readonly<Record<string, Page>> = {
  'customer-gets-429.md': {
    table: limits + byKey,
    prepare: (scene) => send(scene, 9, 'POST /login', '192.0.2.7'),
    beforeCommand: {
      'sluice bans': ({ sluice }) => sluice('ban', '192.0.2.7', '--for', '1h', '--reason', 'scraping'),
    },
  },
  'failed-logins.md': {
    env: () => Promise.resolve({ TRUSTED_PROXIES: 'loopback' }),
    answer: 401,
    prepare: async (scene) => {
      await Promise.all(Array.from({ length: 200 }, () => send(scene, 1, 'POST /login', '192.0.2.7')))
    },
  },
  'account-shield.md': {
    env: () => Promise.resolve({ TRUSTED_PROXIES: 'loopback', DEVICE_SECRET: 'x'.repeat(40) }),
    answer: 401,
    prepare: async ({ gateway }) => {
      const guess = (n: number) => {
        const headers = { 'content-type': 'application/json', 'x-forwarded-for': `198.51.${n}.7` }
        return gateway.send('POST', '/login', { headers, body: '{"email":"owner@example.com"}', agent })
      }
      await Promise.all(Array.from({ length: 200 }, (_, n) => guess(n)))
    },
  },
  'llm-tokens.md': {
    beforeCommand: {
      'sluice override': ({ folder }) => writeFileSync(join(folder, 'key.txt'), 'Bearer a-key-of-acme'),
    },
  },
  'plans-for-api-customers.md': {},
  'try-and-roll-out-a-limit.md': {
    table: before,
    env: async () => ({ REDIS_URL: await freshRedis() }),
    prepare: async (scene) => {
      const searches = Array.from({ length: 12 }, (_, n) =>
        logLine('/search', 'GET', `30:${n + 11}`, '192.0.2.7'),
      )
      const logins = Array.from({ length: 4 }, (_, n) =>
        logLine('/login', 'POST', `31:${n + 11}`, '198.51.100.9'),
      )
      writeFileSync(join(scene.folder, 'access.log'), [...searches, ...logins].join(''))
      await send(scene, 1, 'GET /', '192.0.2.7')
    },
    beforeCommand: {
      'sluice reload': async ({ folder, sluice }, times) => {
        const file = join(folder, 'sluice.yaml')
        if (times > 0) {
          writeFileSync(file, rolledOut.replace('requests: 5', 'requests: none'))
          return
        }
        // The gateway checks the file by itself once a second, and may be faster than the command.
        writeFileSync(file, before)
        await sluice('reload')
        writeFileSync(file, rolledOut)
      },
      'sluice status': async ({ folder, sluice }) => {
        writeFileSync(join(folder, 'sluice.yaml'), rolledOut)
        await sluice('reload')
      },
    },
  },
  'several-backends.md': {},
  'behind-a-proxy.md': {},
  'ban-and-unban.md': {
    table: limits + api,
    prepare: async (scene) => {
      await send(scene, 1216, 'POST /login', '198.51.100.9')
      await send(scene, 203, 'GET /api', '2001:db8::7')
      await send(scene, 9, 'POST /login', '192.0.2.7')
    },
  },
  'deny-lists.md': {
    prepare: async ({ folder, sluice }) => {
      writeFileSync(join(folder, 'drop.txt'), '; a list\n192.0.2.0/24 ; SBL1\n203.0.113.0/24 ; SBL2\n')
      writeFileSync(join(folder, 'sluice.yaml'), `denyList: [{ file: ./drop.txt }]\n${limits}`)
      await sluice('reload')
    },
  },
  'limit-some-requests.md': {},
  'redis-is-away.md': {
    table: `${limits}  - { name: search, match: GET /search, requests: 10, window: 1m }\n`,
    env: () => Promise.resolve({ REDIS_URL: `redis://127.0.0.1:${CLOSED_PORT}` }),
    prepare: (scene) => send(scene, 7, 'POST /login', '192.0.2.7'),
  },
}

test('each how-to page has its test', () => {
  const folder = join(import.meta.dirname, '../../docs/how-to')
  expect(readdirSync(folder).sort()).toEqual(Object.keys(pages).sort())
})

test.each(Object.keys(pages))('%s says where the command sluice comes from', (name) => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/how-to', name), 'utf8')
  const [beforeCommands = ''] = page.split('    $ sluice', 1)
  expect(beforeCommands).toMatch(/npm run\s-s sluice --/)
})

describe.each(Object.entries(pages))(
  '%s',
  (name, { table, env, answer = 200, prepare, beforeCommand = {} }) => {
    const steps = stepsOf(`docs/how-to/${name}`)

    test('each command prints what the page says', async () => {
      expect(steps.some(({ kind }) => kind === 'command')).toBe(true)
      const backend = await startBackend((_, response) => void response.writeHead(answer).end())
      const folder = makeTemporaryDirectory()
      const file = join(folder, 'sluice.yaml')
      for (const step of steps) if (step.kind === 'file') writeFileSync(join(folder, step.name), step.text)
      const written = steps.some((step) => step.kind === 'file' && step.name === 'sluice.yaml')
      if (!written) writeFileSync(file, table ?? limits)
      const routed = written && name === 'several-backends.md'
      const gateway = await startHosted({
        ...(routed ? {} : { UPSTREAM_URL: backend.url }),
        ...(!written && { TRUSTED_PROXIES: 'loopback' }),
        CONFIG_FILE: file,
        ...(await env?.()),
      })
      const commandEnv = { ADMIN_PORT: String(gateway.adminPort), CONFIG_FILE: file }
      const run = async (args: readonly string[]): Promise<string> => {
        const { stdout, stderr } = await runHosted(args, commandEnv, folder)
        return stdout || stderr
      }
      const scene: Scene = { gateway, folder, sluice: (...args) => run(args) }
      await prepare?.(scene)

      const ofThisRun = (text: string): string =>
        text
          .replaceAll(/http:\/\/(?:127\.0\.0\.1|gateway-1):9090/g, `http://127.0.0.1:${gateway.adminPort}`)
          .replaceAll('/etc/sluice', folder)
          .replaceAll(
            /^(host +)127\.0\.0\.1:3000$/gm,
            `$1${written ? '127.0.0.1:3000' : new URL(backend.url).host}`,
          )
      const ran = new Map<string, number>()
      for (const step of steps) {
        if (step.kind !== 'command') continue
        const args = [...ofThisRun(step.command).matchAll(/'([^']*)'|(\S+)/g)].map(
          ([, quoted, word]) => quoted ?? word ?? '',
        )
        expect(args[0], step.command).toBe('sluice')
        const times = ran.get(step.command) ?? 0
        ran.set(step.command, times + 1)
        const [, prepareCommand] =
          Object.entries(beforeCommand).find(([beginning]) => step.command.startsWith(beginning)) ?? []
        // Lists are up to date within a second, and the gateway may reload the file before the command does.
        await eventually(
          step.command,
          async () => {
            await prepareCommand?.(scene, times)
            const output = await run(args.slice(1))
            expect(withoutChance(output)).toBe(withoutChance(ofThisRun(step.output)))
          },
          { endMs: 15_000 },
        )
      }
    })
  },
)

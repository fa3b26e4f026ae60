import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import { runHosted } from '../support/gateway/hosted-command.ts'
import { startBackend } from '../support/http/backend.ts'

/*
 * The address in `--admin` may lead to a program that is not a gateway: one that has taken the port, or one at the end of a tunnel. The
 * operator sees its responses, so they could control the terminal: set a new title, imitate the shell, hide a line. And a response could be
 * endless.
 */
const hostile = '\u001b]0;title\u0007\u001b[2J\u009b31m\u202e\r\u{e0041}'
const texts = [hostile, `second${hostile}`]
const client = { ip: hostile, [hostile]: hostile }
const named = {
  client,
  policy: hostile,
  label: hostile,
  reason: hostile,
  by: hostile,
  plan: hostile,
  keyedBy: hostile,
}
const anything = {
  ...named,
  ...{
    status: hostile,
    store: hostile,
    upstream: hostile,
    version: hostile,
    tableHash: hostile,
    workers: hostile,
  },
  ...{
    unavailableStoreNodes: texts,
    outcome: hostile,
    warnings: texts,
    added: texts,
    reset: texts,
    counted: texts,
  },
  ...{ servers: {}, listedServers: [{ upstream: hostile, url: hostile, state: hostile }], error: hostile },
  ...{
    bans: [named],
    overrides: [named],
    banned: [named],
    unbanned: [named],
    clients: [named],
    states: [named],
  },
  ...{ policies: [named], plans: [named], replicas: [named], mistakes: texts },
}

const verbs = [
  ['status'],
  ['replicas'],
  ['show', 'ip=192.0.2.1'],
  ['limited'],
  ['reset', 'ip=192.0.2.1'],
  ['bans'],
  ['ban', 'ip=192.0.2.1', '--for', '1h'],
  ['unban', 'ip=192.0.2.1'],
  ['overrides'],
  ['plans'],
  ['reload'],
  ['explain', 'GET', '/'],
  ['top', '--once', '--interval', '0.5'],
]

async function answering(answer: (response: ServerResponse, url: string) => void): Promise<string> {
  const server = await startBackend((request, response) => answer(response, request.url ?? ''))
  return server.url
}

/** Writes without end; the client may refuse the response in the middle. */
function writeEndlessly(response: ServerResponse, piece: string): void {
  const more = (): void => {
    while (!response.destroyed && response.write(piece));
  }
  response.on('drain', more)
  more()
}

describe('a program in the place of a gateway', () => {
  test.for([200, 400, 401, 422, 500])(
    'cannot write to the terminal by an answer with status %s',
    async (status) => {
      const url = await answering((response) => {
        response.writeHead(status, { 'content-type': 'application/json' })
        response.end(JSON.stringify(anything))
      })
      for (const verb of verbs) {
        const plain = await runHosted([...verb, '--admin', url])
        expect(`${plain.stdout}${plain.stderr}`.replaceAll('\n', ''), verb.join(' ')).not.toMatch(/\p{C}/u)
        expect(plain.stderr, verb.join(' ')).not.toContain('    at ')
        const { stdout } = await runHosted([...verb, '--admin', url, '--json'])
        expect(stdout.replaceAll('\n', ''), verb.join(' ')).not.toMatch(/\p{C}/u)
        // Parsing restores the characters from their escapes.
        if (verb[0] === 'bans' && status === 200) expect(JSON.parse(stdout)).toEqual(anything)
      }
    },
  )

  test('a program in the place of a gateway cannot end the command with an exception', async () => {
    const strange = { toString: 1, valueOf: 1, toJSON: 1 }
    const bodies = [
      Object.fromEntries(Object.keys(anything).map((name) => [name, strange])),
      Object.fromEntries(Object.keys(anything).map((name) => [name, [strange, null, 'x', 1e308]])),
      {
        ...anything,
        bans: [{ client: strange, by: strange }],
        rules: strange,
        total: strange,
        replicas: [strange],
      },
    ]
    const event = {
      at: 1e308,
      requests: [strange],
      decisions: [strange],
      status: strange,
      limited: { clients: [strange] },
    }
    for (const body of bodies) {
      const url = await answering((response, path) => {
        const isEvents = path === '/api/events'
        response.writeHead(200, { 'content-type': isEvents ? 'text/event-stream' : 'application/json' })
        response.end(isEvents ? `event: status\ndata: ${JSON.stringify(event)}\n\n` : JSON.stringify(body))
      })
      for (const verb of verbs) {
        const { stderr } = await runHosted([...verb, '--admin', url])
        expect(stderr, verb.join(' ')).not.toContain('    at ')
      }
    }
  })

  test('no verb takes the JSON of a backend for the answer of a gateway', async () => {
    const url = await answering((response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end('{"ok":true}')
    })
    const others = [
      ['plan', 'ip=192.0.2.1', 'gold'],
      ['override', 'ip=192.0.2.1', '--rule', 'a', '--remove'],
      ['override', 'ip=192.0.2.1', '--rule', 'a', '--requests', '5', '--for', '1h'],
    ]
    for (const verb of [...verbs.filter(([name]) => name !== 'top'), ...others]) {
      const { status, stdout, stderr } = await runHosted([...verb, '--admin', url])
      expect({ status, stdout }, verb.join(' ')).toEqual({ status: 1, stdout: '' })
      expect(stderr, verb.join(' ')).toContain('is not the admin listener of a gateway')
    }
  })

  test('a program in the place of a gateway cannot have the command read without end', async () => {
    const piece = ' '.repeat(64 * 1024)
    const url = await answering((response, path) => {
      response.writeHead(200, {
        'content-type': path === '/api/events' ? 'text/event-stream' : 'application/json',
      })
      response.write(path === '/api/events' ? 'event: status\ndata: ' : '[')
      writeEndlessly(response, piece)
    })
    for (const verb of [['bans'], ['top', '--once']]) {
      const { status, stdout, stderr } = await runHosted([...verb, '--admin', url])
      expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
      expect(stderr).toContain('the answer is longer than 16 MiB')
    }
  })
})

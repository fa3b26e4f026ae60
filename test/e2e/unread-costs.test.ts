import { readFileSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { send } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'
import { seededRandom } from '../support/random/seeded-random.ts'
import { testSeed } from '../support/random/seed.ts'

const random = seededRandom(testSeed())

/*
 * The attack: a client of the preset llm-gateway asks for responses whose cost the gateway cannot read, because of their length, form or
 * end, to get an unlimited number of tokens. No matter what it asks for, it gets no more than the quota and the tokens of its last request.
 */

// The window is longer than any test.
const preset = readFileSync('presets/llm-gateway.yaml', 'utf8')
  .replaceAll('window: 1m', 'window: 1h')
  .replaceAll(/^( *source|description): .*\n/gm, '')
const quota = 100_000
/** The number of tokens in each response, and in each piece of a stream. */
const answerTokens = 12_000
const pieceTokens = 40

/** Words that are one token each for the tokenizers of GPT-4, so that the number of tokens in a response is known. */
const vocabulary =
  'time year people way day man thing woman life child world school state family student group country problem hand part place case week company system program question work government number night point home water room mother area money story fact month lot right study book eye job word business issue side kind head house service friend father power hour game line end member law car city community name president team minute idea kid body information back parent face others level office door health person art war history party result change morning reason research girl guy moment air teacher force education'.split(
    ' ',
  )

function words(tokens: number): string {
  return Array.from(
    { length: tokens },
    () => ` ${vocabulary[Math.floor(random() * vocabulary.length)] ?? ''}`,
  ).join('')
}

/** Sends the form of response that the client has chosen. */
type Answer = (response: ServerResponse, text: () => string) => void

const json = { 'content-type': 'application/json' }
const usage = { prompt_tokens: 10, total_tokens: answerTokens }
const message = (text: string): object => ({ choices: [{ message: { role: 'assistant', content: text } }] })

function asJson(make: (text: string) => string): Answer {
  return (response, text) => response.writeHead(200, json).end(make(text()))
}

function asStream(piece: (text: string) => string, after: string, lineEnd = '\n'): Answer {
  return (response, text) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (let sent = 0; sent < answerTokens; sent += pieceTokens)
      response.write(`data: ${piece(text())}${lineEnd}${lineEnd}`)
    response.end(after.replaceAll('\n', lineEnd))
  }
}

const chunk = (content: string): string =>
  JSON.stringify({
    id: 'chatcmpl-AbCdEf0123456789',
    object: 'chat.completion.chunk',
    choices: [{ delta: { content } }],
  })
const delta = (text: string): string =>
  JSON.stringify({ type: 'response.output_text.delta', sequence_number: 1, item_id: 'msg_1', delta: text })
const completed = (type: string): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, response: { output: [], usage } })}\n\n`
const done = 'data: [DONE]\n\n'

const answers: Readonly<Record<string, readonly [path: string, answer: Answer]>> = {
  'a long document': ['chat/completions', asJson((text) => JSON.stringify({ ...message(text), usage }))],
  'a document of 300 KB': [
    'chat/completions',
    asJson((text) => JSON.stringify({ ...message(text + ' '.repeat(300_000)), usage })),
  ],
  'a document with the NaN of Python': [
    'chat/completions',
    asJson((text) => JSON.stringify({ ...message(text), p: 0, usage }).replace('"p":0', '"logprobs":[NaN]')),
  ],
  'a document without usage': ['chat/completions', asJson((text) => JSON.stringify(message(text)))],
  'a document of /v1/responses': ['responses', asJson((text) => JSON.stringify({ output: [text], usage }))],
  'a stream with usage': [
    'chat/completions',
    asStream(chunk, `data: {"choices":[],"usage":{"total_tokens":${answerTokens}}}\n\n${done}`),
  ],
  'a stream without usage': ['chat/completions', asStream(chunk, done)],
  'a stream without usage that ends lines by CR': ['chat/completions', asStream(chunk, done, '\r')],
  'a stream of one event': [
    'chat/completions',
    (response, text) =>
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`data: ${chunk(text())}\n\n`),
  ],
  'a stream of /v1/responses': ['responses', asStream(delta, completed('response.completed'))],
  'a stream of /v1/responses that is cut by max_output_tokens': [
    'responses',
    asStream(delta, completed('response.incomplete')),
  ],
  'a stream of /v1/responses that fails': ['responses', asStream(delta, completed('response.failed'))],
  'a stream of /v1/responses without its last event': ['responses', asStream(delta, '')],
  'plain text': [
    'chat/completions',
    (response, text) => response.writeHead(200, { 'content-type': 'text/plain' }).end(text()),
  ],
  'a compressed document': [
    'chat/completions',
    (response, text) =>
      response
        .writeHead(200, { ...json, 'content-encoding': 'gzip' })
        .end(gzipSync(JSON.stringify({ ...message(text()), usage }))),
  ],
  'a stream of /v1/messages': [
    'messages',
    asStream(
      (text) =>
        JSON.stringify({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }),
      `event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":${answerTokens}}}\n\n`,
    ),
  ],
}

describe('no more tokens pass than the quota plus those of one request', () => {
  let gateway: HostedGateway
  /** The number of tokens that the backend has sent, by form of response. */
  const given = new Map<string, number>()

  beforeAll(async () => {
    const backend = await startBackend((request, response) => {
      request.resume()
      const form = String(request.headers['x-form'])
      const [, answer] = answers[form] ?? []
      const isStream = answer !== undefined && form.startsWith('a stream') && form !== 'a stream of one event'
      const tokens = isStream ? pieceTokens : answerTokens
      answer?.(response, () => {
        given.set(form, (given.get(form) ?? 0) + tokens)
        return words(tokens)
      })
      if (form.startsWith('hang up')) hangUpStream(form, response)
    })
    gateway = await startHosted({
      UPSTREAM_URL: backend.url,
      CONFIG_FILE: writeConfigFile(preset),
    })
  })

  /** Sends one event after another as long as the client is connected. */
  function hangUpStream(form: string, response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(
      'data: {"type":"message_start","message":{"usage":{"output_tokens":1}},"usage":{"output_tokens":1}}\n\n',
    )
    let sent = 0
    const timer = setInterval(() => {
      for (let events = 0; events < 20 && sent < answerTokens; events++, sent += pieceTokens) {
        given.set(form, (given.get(form) ?? 0) + pieceTokens)
        response.write(`data: ${chunk(words(pieceTokens))}\n\n`)
      }
      if (sent >= answerTokens) clearInterval(timer)
    }, 1)
    response.on('close', () => clearInterval(timer))
  }

  const headers = (form: string): Record<string, string> => ({
    authorization: `Bearer ${form.replaceAll(/\W/g, '-')}`,
    'x-form': form,
    'accept-encoding': 'gzip',
    'content-type': 'application/json',
  })

  test.each(Object.keys(answers))('%s', async (form) => {
    const [path] = answers[form] ?? []
    let passed = 0
    for (;;) {
      const { status } = await gateway.send('POST', `/v1/${path}`, { headers: headers(form), body: '{}' })
      if (status === 429) break
      expect(status).toBe(200)
      passed += 1
      expect(passed).toBeLessThan(20)
    }
    expect(passed).toBeGreaterThan(1)
    expect(given.get(form)).toBeLessThanOrEqual(quota + answerTokens)
  })

  test.each(['chat/completions', 'responses', 'messages'])(
    'hang up on /v1/%s before the stream says what it has cost',
    async (path) => {
      const form = `hang up ${path}`
      for (let passed = 0; ; passed++) {
        expect(passed).toBeLessThan(60)
        const status = await hangUp(gateway.port, `/v1/${path}`, headers(form), 50_000)
        if (status === 429) break
        // The gateway notices the disconnect a moment later.
        await eventually('the request is over', async () => expect(await inFlight(gateway)).toBe(0))
      }
      const most = path === 'messages' ? 50_000 : quota
      expect(given.get(form)).toBeGreaterThan(most / 4)
      expect(given.get(form)).toBeLessThanOrEqual(most + answerTokens)
    },
  )

  test('a log line and a metric report costs that could not be read', async () => {
    await gateway.waitForLine(/"policy":"llm-tokens","reason":"missing".*cannot read the cost of responses/)
    const { body } = await send(gateway.adminPort, 'GET', '/metrics')
    for (const reason of ['missing', 'type', 'encoding', 'cut'])
      expect(body).toMatch(
        new RegExp(`sluice_unreadable_costs_total\\{[^}]*reason="${reason}"[^}]*\\} [1-9]`),
      )
  })
})

async function inFlight(gateway: HostedGateway): Promise<unknown> {
  const { body } = await askOperator(gateway, 'POST', '/api/clients/inspect', {
    policy: 'llm-in-flight',
    client: { ip: '127.0.0.1' },
  })
  return (body as { states: { used: number }[] }).states[0]?.used
}

/** Hangs up after `bytes` bytes of the response. Resolves with the status. */
function hangUp(port: number, path: string, headers: Record<string, string>, bytes: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const asked = httpRequest({ host: '127.0.0.1', port, method: 'POST', path, headers, agent: false })
    asked.on('response', (response: IncomingMessage) => {
      const status = response.statusCode ?? 0
      let received = 0
      response.on('error', () => undefined)
      response.on('data', (piece: Buffer) => {
        received += piece.length
        if (received >= bytes) asked.destroy()
      })
      response.on('close', () => resolve(status))
    })
    asked.on('error', reject)
    asked.end('{}')
  })
}

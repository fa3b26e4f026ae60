import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { tlsSettings } from '../support/network/certificates.ts'
import { startGateway } from '../support/gateway/gateway.ts'
import { otherBounds, startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { connectHttp2, sendHttp2 } from '../support/http/http2.ts'
import { valuesOf, type RecordedRequest } from '../support/http/lenient-requests.ts'
import { startOtlpCollector, type OtlpCollector, type RecordedSpan } from '../support/http/otlp-collector.ts'
import { CLOSED_PORT } from '../support/network/ports.ts'
import { startRecordingBackend, type RecordingBackend } from '../support/http/recording-backend.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

const limits = 'limits: [{ name: few, match: "* /few/:who", requests: 1, window: 1h, key: path:who }]\n'

let collector: OtlpCollector
let backend: RecordingBackend
let gateways: { readonly 'HTTP/1.1': HostedGateway; readonly 'HTTP/2': HostedGateway }

const tracingTo = (url: string): Record<string, string> => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: url,
  CONFIG_FILE: writeConfigFile(limits),
})
const withoutDelay = otherBounds({ spanDelayMs: 50 })

beforeAll(async () => {
  collector = await startOtlpCollector()
  backend = await startRecordingBackend()
  const env = { ...tracingTo(collector.url), ...withoutDelay, UPSTREAM_URL: backend.url }
  gateways = {
    'HTTP/1.1': await startHosted(env),
    'HTTP/2': await startHosted({ ...env, ...tlsSettings() }),
  }
})

afterAll(() => backend.close())

type Protocol = keyof typeof gateways

/** Sends a request. @returns its status */
async function ask(protocol: Protocol, path: string, headers: Record<string, string | string[]> = {}) {
  const { port, send } = gateways[protocol]
  if (protocol === 'HTTP/1.1') return (await send('GET', path, { headers })).status
  const session = connectHttp2(port)
  const { status } = await sendHttp2(session, { ':method': 'GET', ':path': path, ...headers })
  session.close()
  return status
}

/** The request for a path as the backend received it. */
function arrived(path: string): RecordedRequest {
  const found = backend.requests.find(({ target }) => target.startsWith(path))
  if (!found) throw new Error(`the backend has seen no request for ${path}`)
  return found
}

/** The spans in the trace of the request for a path, by kind, once the trace has `count` spans. */
async function spansOf(
  path: string,
  count: number,
): Promise<Partial<Record<RecordedSpan['kind'], RecordedSpan>>> {
  const found = await eventually(`${count} spans of the request have come`, () => {
    const request = collector.spans.find(({ attributes }) => attributes['url.path'] === path)
    const spans = collector.spans.filter(({ traceId }) => traceId === request?.traceId)
    expect(spans, JSON.stringify(collector.spans)).toHaveLength(count)
    return spans
  })
  return Object.fromEntries(found.map((span) => [span.kind, span]))
}

const traceId = (digit: string): string => digit.repeat(32)
const spanId = '00f067aa0ba902b7'

test('the spans of a request with an uncommon method have it as an attribute, and not as their name', async () => {
  expect((await gateways['HTTP/1.1'].send('PROPFIND', '/dav')).status).toBe(200)
  const { server, client } = await spansOf('/dav', 2)
  const attributes = { 'http.request.method': '_OTHER', 'http.request.method_original': 'PROPFIND' }
  for (const span of [server, client]) expect(span).toMatchObject({ name: 'HTTP', attributes })
})

describe.each<Protocol>(['HTTP/1.1', 'HTTP/2'])('over %s', (protocol) => {
  const own = protocol === 'HTTP/2' ? 'h2' : 'h1'

  test('a request continues the trace of its client in three spans, and the backend the last one', async () => {
    const id = traceId(protocol === 'HTTP/2' ? 'b' : 'a')
    const headers = { traceparent: `00-${id}-${spanId}-01`, tracestate: 'vendor=1,other=2' }
    expect(await ask(protocol, `/few/${own}-allowed`, headers)).toBe(200)
    const { server, internal, client } = await spansOf(`/few/${own}-allowed`, 3)
    expect(server).toMatchObject({
      name: 'GET',
      traceId: id,
      parentSpanId: spanId,
      attributes: {
        'http.request.method': 'GET',
        'http.response.status_code': 200,
        'network.protocol.version': protocol === 'HTTP/2' ? '2' : '1.1',
        'url.scheme': protocol === 'HTTP/2' ? 'https' : 'http',
        'client.address': '127.0.0.1',
      },
    })
    expect(internal).toMatchObject({
      name: 'decision',
      traceId: id,
      parentSpanId: server?.spanId,
      attributes: { 'sluice.outcome': 'allowed', 'sluice.policies': ['few'] },
    })
    expect(client).toMatchObject({
      name: 'GET',
      traceId: id,
      parentSpanId: server?.spanId,
      attributes: {
        'http.response.status_code': 200,
        'server.address': '127.0.0.1',
        'server.port': backend.port,
      },
    })
    const request = arrived(`/few/${own}-allowed`)
    expect(valuesOf(request, 'traceparent')).toEqual([`00-${id}-${client?.spanId ?? ''}-01`])
    expect(valuesOf(request, 'tracestate')).toEqual(['vendor=1,other=2'])
    expect(valuesOf(request, 'x-request-id')).toEqual([server?.attributes['sluice.request_id']])
  })

  test('a refused request has no span of the backend', async () => {
    expect(
      await ask(protocol, `/few/${own}-refused`, { traceparent: `00-${traceId('c')}-${spanId}-00` }),
    ).toBe(200)
    expect(await ask(protocol, `/few/${own}-refused`)).toBe(429)
    const { server, internal } = await spansOf(`/few/${own}-refused`, 2)
    expect(server).toMatchObject({
      parentSpanId: '',
      status: 0,
      attributes: {
        'http.response.status_code': 429,
        'sluice.refused_by': 'few',
        'sluice.counter': expect.stringMatching(/^h:[\w-]{22}$/) as string,
      },
    })
    expect(internal).toMatchObject({
      parentSpanId: server?.spanId,
      attributes: { 'sluice.outcome': 'refused', 'sluice.refused_by': 'few' },
    })
  })

  test('a request that no rule matches has no decision span', async () => {
    expect(await ask(protocol, `/free-${own}`)).toBe(200)
    const { server, client } = await spansOf(`/free-${own}`, 2)
    expect(client?.parentSpanId).toBe(server?.spanId)
  })

  test('a trace that its client does not sample is passed on and not recorded', async () => {
    const id = traceId(protocol === 'HTTP/2' ? 'e' : 'd')
    expect(await ask(protocol, `/unsampled-${own}`, { traceparent: `00-${id}-${spanId}-00` })).toBe(200)
    const [passed = ''] = valuesOf(arrived(`/unsampled-${own}`), 'traceparent')
    expect(passed).toMatch(new RegExp(`^00-${id}-[0-9a-f]{16}-00$`))
    expect(passed).not.toContain(spanId)
    // Once the spans of a later request have arrived, those of this one would have arrived too.
    await ask(protocol, `/after-${own}`)
    await spansOf(`/after-${own}`, 2)
    expect(collector.spans.filter((span) => span.traceId === id)).toEqual([])
  })

  test.each([
    ['malformed', `00-${traceId('f')}-${spanId}`],
    ['all zeros', `00-${traceId('0')}-${spanId}-01`],
    ['twice', [`00-${traceId('f')}-${spanId}-01`, `00-${traceId('f')}-${spanId}-01`]],
  ])('a traceparent that is %s begins a new trace', async (name, traceparent) => {
    const path = `/new-${own}-${name.replace(' ', '-')}`
    expect(await ask(protocol, path, { traceparent, tracestate: 'vendor=1' })).toBe(200)
    const { server, client } = await spansOf(path, 2)
    expect(server?.parentSpanId).toBe('')
    expect([traceId('f'), traceId('0')]).not.toContain(server?.traceId)
    const request = arrived(path)
    expect(valuesOf(request, 'traceparent')).toEqual([
      `00-${server?.traceId ?? ''}-${client?.spanId ?? ''}-01`,
    ])
    expect(valuesOf(request, 'tracestate')).toEqual([])
  })

  test('no credential and no query is in a span', async () => {
    const secret = `s3cr3t-${own}`
    const headers = { authorization: `Bearer ${secret}`, cookie: `sid=${secret}`, 'x-api-key': secret }
    expect(await ask(protocol, `/secrets-${own}?token=${secret}`, headers)).toBe(200)
    await spansOf(`/secrets-${own}`, 2)
    expect(collector.bodies.join('\n')).not.toContain(secret)
  })
})

test('the resource names the gateway and its version', async () => {
  await ask('HTTP/1.1', '/resource')
  await spansOf('/resource', 2)
  expect(collector.resource).toMatchObject({ 'service.name': 'sluice', 'telemetry.sdk.language': 'nodejs' })
  expect(collector.resource['service.version']).toMatch(/^\d+\.\d+\.\d+/)
})

test('a request that takes a route names the route', async () => {
  const routes = `routes: [{ name: shop, paths: /shop/*, upstream: '${backend.url}' }]\n`
  const routed = await startHosted({
    ...tracingTo(collector.url),
    ...withoutDelay,
    CONFIG_FILE: writeConfigFile(limits + routes),
  })
  expect((await routed.send('GET', '/shop/1')).status).toBe(200)
  expect((await routed.send('GET', '/elsewhere-1')).status).toBe(404)
  const { server, client } = await spansOf('/shop/1', 2)
  expect(server?.attributes).toMatchObject({ 'sluice.route': 'shop' })
  expect(client?.attributes).toMatchObject({ 'sluice.route': 'shop', 'http.response.status_code': 200 })
  expect(client?.attributes).not.toHaveProperty('server.address')
})

test('a backend that is away is an error of both spans', async () => {
  const away = await startHosted({
    ...tracingTo(collector.url),
    ...withoutDelay,
    UPSTREAM_URL: `http://127.0.0.1:${CLOSED_PORT}`,
  })
  expect((await away.send('GET', '/away')).status).toBe(502)
  const { server, client } = await spansOf('/away', 2)
  expect(server).toMatchObject({
    status: 2,
    attributes: { 'http.response.status_code': 502, 'error.type': '502' },
  })
  expect(client).toMatchObject({ status: 2, attributes: { 'error.type': 'refused' } })
})

test('an unavailable collector is logged once, and changes nothing else', async () => {
  const gateway = await startHosted({
    ...tracingTo(collector.url),
    UPSTREAM_URL: backend.url,
    OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/elsewhere`,
  })
  expect((await gateway.send('GET', '/untold')).status).toBe(200)
  await gateway.waitForLine(/"spans":2,.*"msg":"span export failed \(OTEL_EXPORTER_OTLP_ENDPOINT\)"/)
  expect((await gateway.send('GET', '/untold')).status).toBe(200)
})

test('spans go to OTEL_EXPORTER_OTLP_TRACES_ENDPOINT as it is, if it is set', async () => {
  const own = await startOtlpCollector()
  const gateway = await startHosted({
    ...tracingTo('http://127.0.0.1:1'),
    ...withoutDelay,
    UPSTREAM_URL: backend.url,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${own.url}/v1/traces`,
  })
  expect((await gateway.send('GET', '/told')).status).toBe(200)
  await eventually('the spans arrive', () => own.spans.length === 2)
})

test("without a collector the client's trace context is passed on unchanged", async () => {
  const gateway = await startHosted({ UPSTREAM_URL: backend.url })
  const headers = { traceparent: `00-${traceId('9')}-${spanId}-01`, tracestate: 'vendor=1' }
  expect((await gateway.send('GET', '/plain', { headers })).status).toBe(200)
  expect(valuesOf(arrived('/plain'), 'traceparent')).toEqual([headers.traceparent])
  expect(valuesOf(arrived('/plain'), 'tracestate')).toEqual(['vendor=1'])
})

describe('at the end of the process', () => {
  test.each(['1', '2'])('buffered spans are flushed, with %s worker(s)', async (workers) => {
    const env = { ...tracingTo(collector.url), UPSTREAM_URL: backend.url, WORKERS: workers }
    const gateway = await startGateway({ ...env, OTEL_SERVICE_NAME: `edge-${workers}` })
    expect((await gateway.send('GET', `/few/left-${workers}`)).status).toBe(200)
    expect(await gateway.process.stop('SIGTERM')).toBe(0)
    await spansOf(`/few/left-${workers}`, 3)
    expect(collector.resource['service.name']).toBe(`edge-${workers}`)
  })

  test('a collector that never answers does not delay the exit', async () => {
    const silent = await startOtlpCollector(() => undefined)
    const gateway = await startGateway({ ...tracingTo(silent.url), UPSTREAM_URL: backend.url })
    expect((await gateway.send('GET', '/unheard')).status).toBe(200)
    expect(await gateway.process.stop('SIGTERM')).toBe(0)
    expect(gateway.process.output()).toContain('spans lost at shutdown')
    expect(silent.spans).toHaveLength(2)
  })
})

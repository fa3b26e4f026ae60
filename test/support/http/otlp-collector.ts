import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { atEndOfFile } from '../run/at-end.ts'

/** A span of OTLP, with its attributes as an object. */
export type RecordedSpan = {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string
  readonly name: string
  readonly kind: 'internal' | 'server' | 'client'
  /** 0 unset, 1 ok, 2 error. */
  readonly status: number
  readonly attributes: Readonly<Record<string, unknown>>
}

/** An OpenTelemetry collector that receives spans by OTLP over HTTP, as JSON. */
export type OtlpCollector = {
  readonly url: string
  /** All spans so far, in the order in which they ended. */
  readonly spans: readonly RecordedSpan[]
  /** The request bodies as received. */
  readonly bodies: readonly string[]
  /** The attributes of the resource in the last body. */
  readonly resource: Readonly<Record<string, unknown>>
}

type Value = {
  stringValue?: string
  intValue?: number
  boolValue?: boolean
  arrayValue?: { values: Value[] }
}
type Attributes = { key: string; value: Value }[]
type WrittenSpan = Omit<RecordedSpan, 'kind' | 'status' | 'attributes' | 'parentSpanId'> & {
  readonly parentSpanId?: string
  readonly kind: number
  readonly status: { readonly code: number }
  readonly attributes: Attributes
}
type Body = {
  resourceSpans: { resource: { attributes: Attributes }; scopeSpans: { spans: WrittenSpan[] }[] }[]
}

/** The kinds of spans, by their number in OTLP. */
const kinds = new Map<number, RecordedSpan['kind']>([
  [1, 'internal'],
  [2, 'server'],
  [3, 'client'],
])

/** @param answer answers each request; unless given, all are accepted */
export async function startOtlpCollector(
  answer: (response: ServerResponse) => void = (response) => response.end('{}'),
): Promise<OtlpCollector> {
  const spans: RecordedSpan[] = []
  const bodies: string[] = []
  let resource: Record<string, unknown> = {}
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      if (request.method !== 'POST' || request.url !== '/v1/traces') return response.writeHead(404).end()
      bodies.push(body)
      for (const group of (JSON.parse(body) as Body).resourceSpans) {
        resource = objectOf(group.resource.attributes)
        for (const span of group.scopeSpans.flatMap((scope) => scope.spans)) spans.push(read(span))
      }
      return answer(response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEndOfFile(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    spans,
    bodies,
    get resource() {
      return resource
    },
  }
}

function read({
  traceId,
  spanId,
  parentSpanId = '',
  name,
  kind,
  status,
  attributes,
}: WrittenSpan): RecordedSpan {
  const kindName = kinds.get(kind)
  if (!kindName) throw new Error(`no such kind of span: ${kind}`)
  return {
    traceId,
    spanId,
    parentSpanId,
    name,
    kind: kindName,
    status: status.code,
    attributes: objectOf(attributes),
  }
}

function objectOf(attributes: Attributes): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, valueOf(value)]))
}

function valueOf({ stringValue, intValue, boolValue, arrayValue }: Value): unknown {
  return stringValue ?? intValue ?? boolValue ?? arrayValue?.values.map(valueOf)
}

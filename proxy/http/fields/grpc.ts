/** gRPC status codes (`doc/statuscodes.md` of gRPC). */
const UNKNOWN = 2
const RESOURCE_EXHAUSTED = 8
const statuses = new Map([
  [400, 13],
  [401, 16],
  [403, 7],
  [404, 12],
  [413, RESOURCE_EXHAUSTED],
  [429, RESOURCE_EXHAUSTED],
  [431, RESOURCE_EXHAUSTED],
  [502, 14],
  [503, 14],
  [504, 14],
])

/**
 * The headers of a "Trailers-Only" response, which ends a gRPC call with an error before it has begun. The HTTP status is mapped as gRPC
 * clients map it (http-grpc-status-mapping.md), except that 413, 429 and 431 become RESOURCE_EXHAUSTED.
 *
 * @param text the error message for people
 * @param fields of the reply: name, value, name, value…; `retry-after` in seconds is also sent in the forms that gRPC clients read
 */
export function fieldsOfFailedCall(
  { status, text = '' }: { readonly status: number; readonly text?: string },
  fields: readonly string[],
): string[] {
  const code = statuses.get(status) ?? UNKNOWN
  const all = ['content-type', 'application/grpc', 'grpc-status', String(code), ...fields]
  if (text !== '') all.push('grpc-message', percentEncoded(text))
  const place = fields.indexOf('retry-after')
  if (code !== RESOURCE_EXHAUSTED || place === -1) return all
  const seconds = Number(fields[place + 1])
  all.push('grpc-retry-pushback-ms', String(seconds * 1000))
  all.push('grpc-status-details-bin', retryInfo(code, text, seconds))
  return all
}

/** Percent-encodes a `grpc-message`: spaces and visible ASCII other than `%` stay (gRPC over HTTP/2). */
function percentEncoded(text: string): string {
  return Buffer.from(text)
    .toString('latin1')
    .replace(/[^ -$&-~]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`)
}

const RETRY_INFO = 'type.googleapis.com/google.rpc.RetryInfo'

/** Encodes a `google.rpc.Status` with a `RetryInfo` whose `retry_delay` is `seconds`, in Base64 without padding. */
function retryInfo(code: number, text: string, seconds: number): string {
  const delay = message([1, varint(seconds)])
  const info = message([1, delay])
  const any = message([1, Buffer.from(RETRY_INFO)], [2, info])
  return message([1, varint(code)], [2, Buffer.from(text)], [3, any])
    .toString('base64')
    .replace(/={1,2}$/, '')
}

type Varint = { readonly varint: Buffer }

/** Encodes a message of Protocol Buffers. Each field is a number, or bytes preceded by their length. */
function message(...fields: readonly (readonly [number: number, value: Buffer | Varint])[]): Buffer {
  return Buffer.concat(
    fields.flatMap(([number, value]) =>
      'varint' in value
        ? [Buffer.of(number << 3), value.varint]
        : [Buffer.of((number << 3) | 2), varint(value.length).varint, value],
    ),
  )
}

function varint(value: number): Varint {
  const bytes: number[] = []
  let rest = BigInt(value)
  do {
    const more = rest > 127n
    bytes.push(Number(rest & 127n) | (more ? 128 : 0))
    rest >>= 7n
  } while (rest > 0n)
  return { varint: Buffer.from(bytes) }
}

import { ownCopy } from '../message/detach-buffer.ts'
import { Remembered } from '../message/remembered.ts'
import { token } from '../message/token.ts'

/** Common headers of requests and responses, in their usual HTTP/1 spelling. */
const inHttp1 = [
  ...['Accept', 'Accept-Encoding', 'Accept-Language', 'Accept-Ranges', 'Access-Control-Request-Headers'],
  ...[
    'Access-Control-Request-Method',
    'Age',
    'Authorization',
    'Cache-Control',
    'Connection',
    'Content-Encoding',
  ],
  ...[
    'Content-Length',
    'Content-Type',
    'Cookie',
    'Date',
    'DNT',
    'ETag',
    'Expect',
    'Expires',
    'Forwarded',
    'Host',
  ],
  ...['If-Match', 'If-Modified-Since', 'If-None-Match', 'If-Range', 'If-Unmodified-Since', 'Keep-Alive'],
  ...[
    'Last-Modified',
    'Link',
    'Location',
    'Origin',
    'Pragma',
    'Priority',
    'Range',
    'Referer',
    'Server',
    'Set-Cookie',
  ],
  ...['Sec-Fetch-Dest', 'Sec-Fetch-Mode', 'Sec-Fetch-Site', 'Sec-Fetch-User', 'Sec-GPC', 'Sec-CH-UA'],
  ...['Sec-CH-UA-Mobile', 'Sec-CH-UA-Platform', 'Sec-WebSocket-Extensions', 'Sec-WebSocket-Key'],
  ...['Sec-WebSocket-Protocol', 'Sec-WebSocket-Version', 'Strict-Transport-Security', 'TE', 'Traceparent'],
  ...[
    'Tracestate',
    'Trailer',
    'Transfer-Encoding',
    'Upgrade',
    'Upgrade-Insecure-Requests',
    'User-Agent',
    'Vary',
    'Via',
  ],
  ...['X-Api-Key', 'X-Content-Type-Options', 'X-CSRF-Token', 'X-Forwarded-For', 'X-Forwarded-Host'],
  ...[
    'X-Forwarded-Port',
    'X-Forwarded-Proto',
    'X-Frame-Options',
    'X-Powered-By',
    'X-Real-IP',
    'X-Request-ID',
  ],
  ...['X-Requested-With', 'Baggage', 'Grpc-Accept-Encoding', 'Grpc-Encoding', 'Grpc-Timeout'],
]

/** Maximum length of a name in tables of names. */
export const MAX_NAME_LENGTH = 64

/** Lower-case names that tables of names always have, so that no client can displace them. */
export const usualNames: readonly string[] = inHttp1.map((name) => name.toLowerCase())

/** How HTTP/1 and HTTP/2 spell the usual names. @internal exported for its test */
export const usualSpellings: readonly string[] = [...new Set([...inHttp1, ...usualNames])]

/** Fields that tell the parser of requests where a message ends, and whether the connection stays open. */
type FramingName = 'content-length' | 'transfer-encoding' | 'connection'

export type FieldName = {
  readonly spelling: string
  /** The name in lower case, one string shared by all messages. */
  readonly name: string
  readonly framing: FramingName | undefined
}

const framingNames: ReadonlySet<string> = new Set<FramingName>([
  'content-length',
  'transfer-encoding',
  'connection',
])

/** Names that have been seen: each spelling is checked and lowercased once, and no message keeps a copy of its own. */
const remembered = new Remembered<FieldName>(
  1024,
  MAX_NAME_LENGTH,
  usualSpellings.map((spelling) => [spelling, fieldNameOf(spelling)]),
)

/**
 * Reads the name of a header or a trailer. All parsers use this function, so that other code can compare names in lower case.
 *
 * @returns undefined if the spelling is not a token
 */
export function readFieldName(spelling: string): FieldName | undefined {
  const known = remembered.find(spelling)
  if (known) return known
  if (!token.test(spelling)) return undefined
  const made = fieldNameOf(spelling.length > MAX_NAME_LENGTH ? spelling : ownCopy(spelling))
  remembered.add(made.spelling, made)
  return made
}

function fieldNameOf(spelling: string): FieldName {
  const name = spelling.toLowerCase()
  return { spelling, name, framing: framingNames.has(name) ? (name as FramingName) : undefined }
}

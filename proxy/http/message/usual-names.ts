/** Headers of requests and responses that are in use nearly everywhere, as HTTP/1 mostly spells them. */
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

/** Names that tables of names always have, so that no client can fill them with others: spelled so, and in lower case. */
export const usualNames: readonly string[] = [
  ...new Set(inHttp1.flatMap((name) => [name, name.toLowerCase()])),
]

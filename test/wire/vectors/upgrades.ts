import { because, forwarded, refused, request, type Vector } from '../vector.ts'

const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='
const version = 'Sec-WebSocket-Version: 13'
const offer = ['Connection: Upgrade', 'Upgrade: websocket']

function handshake(...lines: string[]): string {
  return request('GET /a', ...offer, version, key, ...lines)
}

const open = { statuses: [101], backend: ['GET /a'] }
const plain = [forwarded('GET /a'), { sees: { upgrade: [], connection: [] } }] as const

/** RFC 6455 section 4 and RFC 9110 section 7.8: requests that become tunnels, and requests that do not. */
export const upgrades: readonly Vector[] = [
  ...because('RFC 6455 section 4.1', 'a handshake as it has to be becomes a tunnel when the backend agrees', [
    ['a handshake', handshake(), open, { sees: { upgrade: ['websocket'], connection: ['upgrade'] } }],
    [
      'in other letters',
      request('GET /a', 'connection: keep-alive, UPGRADE', 'upgrade: WebSocket', version, key),
      open,
    ],
    [
      'with a protocol and extensions',
      handshake('Sec-WebSocket-Protocol: chat', 'Sec-WebSocket-Extensions: permessage-deflate'),
      open,
      { sees: { 'sec-websocket-protocol': ['chat'] } },
    ],
    ['with a length of zero', handshake('Content-Length: 0'), open, { sees: { 'content-length': [] } }],
    ['with an expectation', handshake('Expect: 100-continue'), open, { sees: { expect: [] } }],
    ['of a target that is spelled oddly', handshake().replace('/a', '/b/../a'), open],
  ]),
  ...because(
    'RFC 6455 section 4.2.1',
    'an offer of a WebSocket that is not a handshake is refused: no tunnel may hide a request',
    [
      ['without a key', request('GET /a', ...offer, version), refused(400)],
      [
        'with a key too short',
        request('GET /a', ...offer, version, 'Sec-WebSocket-Key: c2hvcnQ='),
        refused(400),
      ],
      [
        'with a key that is not base64',
        request('GET /a', ...offer, version, 'Sec-WebSocket-Key: !!!!!!!!!!!!!!!!!!!!!!=='),
        refused(400),
      ],
      ['with two keys', handshake(key), refused(400)],
      ['that Connection takes apart', handshake('Connection: Sec-WebSocket-Key'), refused(400)],
      ['without a version', request('GET /a', ...offer, key), refused(400)],
      [
        'with another version',
        request('GET /a', ...offer, 'Sec-WebSocket-Version: 8', key),
        refused(426),
        { says: 'sec-websocket-version: 13' },
      ],
      [
        'with an invalid version',
        request('GET /a', ...offer, 'Sec-WebSocket-Version: 1337', key),
        refused(426),
      ],
      ['with two versions', handshake('Sec-WebSocket-Version: 8'), refused(426)],
      ['by POST', handshake().replace('GET', 'POST'), refused(400)],
      ['by HEAD', handshake().replace('GET', 'HEAD'), refused(400)],
      ['with content', handshake('Content-Length: 2') + 'hi', refused(400)],
      ['with chunks', handshake('Transfer-Encoding: chunked') + '0\r\n\r\n', refused(400)],
      ['with another expectation', handshake('Expect: 200-ok'), refused(417)],
      ['of a target that is refused', handshake().replace('/a', '/%zz'), refused(400)],
      ['without Host', handshake().replace('Host: wire.example\r\n', ''), refused(400)],
    ],
  ),
  ...because(
    'RFC 9110 section 7.8',
    'another offer is not taken up, and the request is served as if it had not been made',
    [
      ['h2c', request('GET /a', 'Connection: Upgrade', 'Upgrade: h2c'), ...plain],
      [
        'h2c with a body',
        request('POST /a', 'Connection: Upgrade', 'Upgrade: h2c', 'Content-Length: 2') + 'hi',
        forwarded('POST /a hi'),
        { sees: { upgrade: [] } },
      ],
      ['TLS', request('GET /a', 'Connection: Upgrade', 'Upgrade: TLS/1.0'), ...plain],
      [
        'a list of offers',
        request('GET /a', 'Connection: Upgrade', 'Upgrade: h2c, websocket', version, key),
        ...plain,
      ],
      ['two lines of offers', request('GET /a', ...offer, 'Upgrade: h2c', version, key), ...plain],
      [
        'an offer that Connection does not name',
        request('GET /a', 'Upgrade: websocket', version, key),
        ...plain,
      ],
      ['Connection without an offer', request('GET /a', 'Connection: Upgrade', version, key), ...plain],
      [
        'an offer in HTTP/1.0',
        `GET /a HTTP/1.0\r\nHost: a\r\n${offer.join('\r\n')}\r\n${version}\r\n${key}\r\n\r\n`,
        ...plain,
      ],
      ['an empty offer', request('GET /a', 'Connection: Upgrade', 'Upgrade:'), ...plain],
    ],
  ),
]

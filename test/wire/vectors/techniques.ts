import { because, forwarded, inTurn, refused, request, type Vector } from '../vector.ts'

const evil = request('GET /evil')
const end = '0\r\n\r\n'
const te = 'Transfer-Encoding: chunked'

/** A `POST` whose content is a request by one reading and not by another. */
function post(lines: readonly string[], content: string): string {
  return request('POST /a', ...lines) + content
}

/** Techniques of hiding requests, by their published names. */
export const techniques: readonly Vector[] = [
  ...because('HTTP desync attacks, 2019', 'a coding that one of two servers does not see (TE.TE)', [
    ['TE.TE, x before', post(['Content-Length: 4', 'Transfer-Encoding: xchunked'], end + evil), refused(400)],
    ['TE.TE, a second one', post([te, 'Transfer-encoding: x'], end + evil), refused(400)],
    ['TE.TE, a tab', post(['Content-Length: 4', 'Transfer-Encoding:\tchunked'], end + evil), refused(400)],
    [
      'TE.TE, a blank before the name',
      post(['X-A: b', ' Transfer-Encoding: chunked'], end + evil),
      refused(400),
    ],
    ['TE.TE, a line feed in a value', post(['X: X\nTransfer-Encoding: chunked'], end + evil), refused(400)],
    ['TE.TE, a line feed before the colon', post(['Transfer-Encoding\n: chunked'], end + evil), refused(400)],
    [
      'TE.TE, a form feed',
      post(['Content-Length: 4', 'Transfer-Encoding: \x0cchunked'], end + evil),
      refused(400),
    ],
    ['TE.TE, apostrophes', post(["Transfer-Encoding: 'chunked'"], end + evil), refused(400)],
    [
      'TE.TE, an encoded letter',
      post(['Content-Length: 4', 'Transfer-%45ncoding: chunked'], end + evil),
      inTurn(forwarded('POST /a 0\r\n\r'), refused(400)),
      { sees: { 'transfer-%45ncoding': [] } },
    ],
  ]),
  ...because(
    'Browser-powered desync attacks, 2022',
    'content of a request that needs none is read, or the connection ends (CL.0)',
    [
      ['CL.0', post([`Content-Length: ${evil.length}`], evil), forwarded(`POST /a ${evil}`)],
      [
        'CL.0 for GET',
        request('GET /a', `Content-Length: ${evil.length}`) + evil,
        forwarded(`GET /a ${evil}`),
      ],
      [
        'CL.0 for a target that is refused',
        request('POST /%zz', `Content-Length: ${evil.length}`) + evil,
        refused(400),
      ],
      [
        'CL.0 for OPTIONS *',
        request('OPTIONS *', `Content-Length: ${evil.length}`) + evil,
        { statuses: [204], backend: [] },
      ],
      ['CL.0 for TRACE', request('TRACE /a', `Content-Length: ${evil.length}`) + evil, refused(405)],
    ],
  ),
  ...because(
    'HTTP/1.1 must die, 2025',
    'a field that one of two servers does not see (0.CL), and an early 100 Continue',
    [
      [
        'a length after a blank (0.CL)',
        `GET /a HTTP/1.1\r\nHost: a\r\n Content-Length: ${evil.length}\r\n\r\n${evil}`,
        refused(400),
      ],
      [
        'a length after an empty field',
        request('GET /a', 'X:', `Content-Length: ${evil.length}`) + evil,
        forwarded(`GET /a ${evil}`),
      ],
      ['Expect obfuscated', post(['Expect: y 100-continue', 'Content-Length: 2'], 'hi'), refused(417)],
      [
        'Expect of GET',
        request('GET /a', 'Expect: 100-continue', `Content-Length: ${evil.length}`) + evil,
        forwarded(`GET /a ${evil}`),
        { interim: [100] },
      ],
    ],
  ),
]

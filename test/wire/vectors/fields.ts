import { because, forwarded, refused, request, type Vector } from '../vector.ts'

function seen(name: string, ...values: string[]) {
  return [forwarded('GET /a'), { sees: { [name]: values } }] as const
}

/** RFC 9110 section 5 and RFC 9112 section 5: field lines. */
export const fields: readonly Vector[] = [
  ...because('RFC 9110 section 5.5', 'a value is passed on as it is, without the blanks around it', [
    ['a field', request('GET /a', 'X-A: b'), ...seen('x-a', 'b')],
    ['blanks around the value', request('GET /a', 'X-A: \t b c \t '), ...seen('x-a', 'b c')],
    ['an empty value', request('GET /a', 'X-A:'), ...seen('x-a', '')],
    ['an empty value of blanks', request('GET /a', 'X-A: \t '), ...seen('x-a', '')],
    ['a colon in the value', request('GET /a', 'X-A: b:c'), ...seen('x-a', 'b:c')],
    ['a tab in the value', request('GET /a', 'X-A: b\tc'), ...seen('x-a', 'b\tc')],
    ['bytes beyond ASCII', request('GET /a', 'X-A: caf\xc3\xa9 \xff'), ...seen('x-a', 'caf\xc3\xa9 \xff')],
    ['several lines, in order', request('GET /a', 'X-A: b', 'X-B: c', 'X-A: d'), ...seen('x-a', 'b', 'd')],
    [
      'a name of every kind of character',
      request('GET /a', "X!#$%&'*+-.^`|~9: b", 'X-A9: c'),
      forwarded('GET /a'),
      { sees: { "x!#$%&'*+-.^`|~9": [], 'x-a9': ['c'] } },
    ],
    ['a cookie', request('GET /a', 'Cookie: a=b; c="d"'), ...seen('cookie', 'a=b; c="d"')],
    ['two lines of cookies', request('GET /a', 'Cookie: a=b', 'Cookie: c=d'), ...seen('cookie', 'a=b; c=d')],
  ]),
  ...because(
    'RFC 9110 section 5.6.2',
    'a name that is not a token is refused: another reader may find a field in it',
    [
      ['no name', request('GET /a', ': b'), refused(400)],
      ['a blank before the colon', request('GET /a', 'X-A : b'), refused(400)],
      ['a tab before the colon', request('GET /a', 'X-A\t: b'), refused(400)],
      ['a blank in the name', request('GET /a', 'X A: b'), refused(400)],
      ['a line without a colon', request('GET /a', 'X-A'), refused(400)],
      ['a bracket', request('GET /a', 'X(A): b'), refused(400)],
      ['a quote', request('GET /a', '"X-A": b'), refused(400)],
      ['a slash', request('GET /a', 'X/A: b'), refused(400)],
      ['an equals sign', request('GET /a', 'X=A: b'), refused(400)],
      ['an at sign', request('GET /a', 'X@A: b'), refused(400)],
      ['a pseudo-field', request('GET /a', ':path: /b'), refused(400)],
      ['DEL', request('GET /a', 'X\x7fA: b'), refused(400)],
      ['a byte beyond ASCII', request('GET /a', 'X-\xe9: b'), refused(400)],
      ['a NUL', request('GET /a', 'X\0A: b'), refused(400)],
      ['a vertical tab', request('GET /a', 'X-A\x0b: b'), refused(400)],
      ['a line end for a name', request('GET /a', '\x85X-A: b'), refused(400)],
    ],
  ),
  ...because(
    'RFC 9112 section 5.2',
    'folded lines are refused: where folding is not known they are lines of their own',
    [
      ['a folded line', request('GET /a', 'X-A: b', ' c'), refused(400)],
      ['folded by a tab', request('GET /a', 'X-A: b', '\tc'), refused(400)],
      ['a folded first line', request('GET /a').replace('Host', ' X-A: b\r\nHost'), refused(400)],
      [
        'a folded line that is a field',
        request('GET /a', 'X-A: b', ' Transfer-Encoding: chunked'),
        refused(400),
      ],
      ['a folded line of blanks', request('GET /a', 'X-A: b', ' '), refused(400)],
      ['folded after an empty value', request('GET /a', 'Transfer-Encoding:', ' chunked'), refused(400)],
      ['folded by LF alone', request('GET /a', 'X-A: b\n c'), refused(400)],
    ],
  ),
  ...because('RFC 9112 section 2.2', 'bare CR, bare LF and NUL end a line for some readers', [
    ['a bare LF after a value', request('GET /a', 'X-A: b\nX-B: c'), refused(400)],
    ['a bare CR in a value', request('GET /a', 'X-A: b\rX-B: c'), refused(400)],
    ['a bare CR at the end of a value', request('GET /a', 'X-A: b\r'), refused(400)],
    ['a NUL in a value', request('GET /a', 'X-A: b\0c'), refused(400)],
    ['a NUL at the end of a value', request('GET /a', 'X-A: b\0'), refused(400)],
    [
      'a bare LF before the empty line',
      request('GET /a', 'X-A: b').replace('b\r\n\r\n', 'b\n\r\n'),
      refused(400),
    ],
    ['a bare LF as the empty line', request('GET /a', 'X-A: b').replace('\r\n\r\n', '\r\n\n'), refused(400)],
    ['a bare CR as the empty line', request('GET /a', 'X-A: b').replace('\r\n\r\n', '\r\n\rX'), refused(400)],
    ['an empty line of blanks', request('GET /a', ' '), refused(400)],
    ['a control character', request('GET /a', 'X-A: b\x01'), refused(400)],
    ['an escape character', request('GET /a', 'X-A: \x1b[2J'), refused(400)],
    ['DEL in a value', request('GET /a', 'X-A: b\x7f'), refused(400)],
    ['a form feed', request('GET /a', 'X-A: b\x0cc'), refused(400)],
  ]),
  ...because('RFC 9110 section 5.1', 'names of what every object has are names like any other', [
    ['__proto__', request('GET /a', '__proto__: b'), ...seen('__proto__')],
    ['__proto__ twice', request('GET /a', '__proto__: b', '__proto__: c'), ...seen('__proto__')],
    ['constructor', request('GET /a', 'constructor: b'), ...seen('constructor', 'b')],
    ['hasOwnProperty', request('GET /a', 'hasOwnProperty: b'), ...seen('hasownproperty', 'b')],
    ['toString and valueOf', request('GET /a', 'toString: b', 'valueOf: c'), ...seen('valueof', 'c')],
    [
      '__proto__ named by Connection',
      request('GET /a', 'Connection: __proto__', '__proto__: b'),
      ...seen('__proto__'),
    ],
  ]),
  ...because('RFC 9110 section 5.4', 'more than expected is rejected', [
    ['fields of 12 KB', request('GET /a', `X-A: ${'b'.repeat(12_000)}`), forwarded('GET /a')],
    ['a value of 20 KB', request('GET /a', `X-A: ${'b'.repeat(20_000)}`), refused(431)],
    ['a name of 20 KB', request('GET /a', `${'X'.repeat(20_000)}: b`), refused(431)],
    ['a value that never ends', `GET /a HTTP/1.1\r\nHost: a\r\nX-A: ${'b'.repeat(70_000)}`, refused(431)],
    [
      'a hundred fields',
      request('GET /a', ...Array.from({ length: 99 }, (_, i) => `X-${i}: b`)),
      forwarded('GET /a'),
    ],
    [
      'four thousand names without a value',
      request('GET /a', ...Array.from({ length: 4_000 }, () => 'a:')),
      refused(431),
    ],
    ['two thousand fields', request('GET /a', ...Array.from({ length: 2_000 }, () => 'X: b')), refused(431)],
    [
      'a coding after a thousand fields',
      request('POST /a', ...Array.from({ length: 1_001 }, () => 'X: b'), 'Transfer-Encoding: chunked') +
        '0\r\n\r\n',
      refused(431),
    ],
  ]),
]

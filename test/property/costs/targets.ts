import { readMatchPaths } from '../../../proxy/request/target/match-path.ts'
import { readTarget, type Target } from '../../../proxy/request/target/target.ts'
import { openText, type CostRow } from '../../support/cost/row.ts'

/** Reads a path that has not been read before. */
function readNewTarget(raw: string): Target | string {
  return readTarget('POST', raw, { headers: {}, readPath: readMatchPaths })
}

const common = {
  /** Half of the default of `MAX_HEADER_SIZE`. */
  largestBytes: 8 * 1024,
  onlyWhole: true,
  atoms: [
    'a',
    '/',
    '.',
    '..',
    '%',
    '%2',
    '2f',
    '%2F',
    ';',
    '%3b',
    '\\',
    '%5C',
    '&',
    '%3f',
    '%25',
    ' ',
    '%20',
    '%c3%a9',
    '%ff',
    ':',
    '.php',
  ],
  open: openText(readNewTarget),
}

export const rows: readonly CostRow[] = [
  {
    ...common,
    name: 'a path',
    units: [
      'a',
      '/',
      ';',
      ';/',
      '/{n}',
      '%2f',
      '..;/',
      'a/../',
      '%20',
      '. ',
      '\\',
      '&',
      'a.php/',
      '%252f',
      'a;b//c%2f..%5c&',
      '%e6%97%a5;',
    ],
    wrap: (content) => `/${content}`,
  },
  {
    ...common,
    name: 'a path that ends in all that may be read in several ways',
    units: ['a', 'a/', '%c3%a9', '.', '%41'],
    wrap: (content) => `/${content}%252e%252e/a;b//c%2f..%5c&%3fx;a.php/b.c`,
  },
  {
    ...common,
    name: 'a batch of calls',
    units: ['{n},', 'a,', '/a', '/{n},', '%2c{n}', 'a/b,{n}.c,', ';{n},'],
    wrap: (content) => `/${content},{n}?batch=1`,
  },
  {
    ...common,
    // In the time that a client needs to send one target of 8 KB, it can send hundreds of requests with short targets.
    name: 'short paths of many requests',
    maxMs: 100,
    units: [
      '/.%2F%255C%253b%25../cgi-bin/;%2Fhttp:////%20& ',
      '/.%2F%255C%253b.x..../cgi-bin/%2541/cgi-bin/http:///%20%2Fhttp://..;http:// ',
      '/.;/login%3B..;.%2F%23%2F%255C%20;%3B/login%2F%255C%3B%253b.//%255C.x../index.php%2541;//..;..;%3f ',
      '/&%3B//%3B%252F%255C%2F\\/ ',
      '/a;b//c%2f..%5c& ',
    ],
    wrap: (content) => content,
    // A gateway does not keep its readings of one path while it reads the next.
    open: openText((raws) => raws.split(' ').map((raw) => typeof readNewTarget(raw))),
  },
]

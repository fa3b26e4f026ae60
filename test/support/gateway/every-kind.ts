import { writeTableFiles } from './table-files.ts'

/** For tables with `rulesOfEveryKind`. Their rule with devices refuses a `PUT` of more than `MAX_SIGN_IN_BYTES`. */
export const DEVICE_SECRET = 'a-secret-of-devices-with-32-characters'
export const MAX_SIGN_IN_BYTES = 65_536

/**
 * Rules of every kind for all requests, as lines of `limits`. They refuse no request, but read addresses, hosts, headers, cookies, queries
 * and bodies, hold slots, and set device cookies.
 */
const rulesOfEveryKind: readonly string[] = [
  "{ name: network, match: '* /*', key: ip/24/48, requests: 1000000, window: 1d, over: { route: elsewhere } }",
  "{ name: sliding, match: '* /*', requests: 100000, window: 1d, algorithm: sliding }",
  "{ name: bucket, match: '* /*', requests: 1000000, window: 1m, algorithm: token-bucket }",
  "{ name: in-flight, match: '* /*', concurrency: 100000 }",
  "{ name: by-month, match: '* /*', key: host, requests: 1000000, window: month, timezone: Europe/Berlin }",
  "{ name: path, match: '* /:first/*', key: 'path:first', requests: 1000000, window: 1m }",
  "{ name: query, match: '* /*', key: ['query:a', 'cookie:session'], requests: 1000000, window: 1m }",
  "{ name: account, match: '* /*', key: 'body:email', requests: 1000000, window: 1d, countStatus: [401] }",
  "{ name: sign-in, match: 'PUT /*', key: 'body:email', requests: 1000000, window: 1d, countStatus: [401], device: { status: [2xx] } }",
  "{ name: first, match: '* /*', key: { first: ['header:authorization', 'body:user.name', ip] }, requests: 1000000, window: 1m }",
  "{ name: units, match: '* /*', requests: 1000000, window: 1d, mode: shadow, cost: { reserve: 'json:n', settle: 'header:cost' } }",
  "{ name: planned, match: '* /*', key: 'header:x-client', requests: 1000000, window: 1d, plans: { pro: 2000000 }, plan: store }",
  "{ name: turns, match: '* /*', requests: 1000000, window: 1m, algorithm: token-bucket, over: { delay: 2s, waiting: 100 } }",
  "{ name: listed, match: '* /*', when: [{ ip: [127.0.0.0/8, '::1', cloudflare] }], unless: [{ ip: 192.0.2.0/24 }, { cookie: { staff: { prefix: 'a; b' } } }], requests: 1000000, window: 1d, allowList: [{ ip: private }] }",
  "{ name: exceptions, match: '* /*', key: 'body:login', requests: 1000000, window: week, overrides: [{ clients: [{ 'body:login': a@x }, { ip: 192.0.2.7 }], requests: 2000000 }] }",
  "{ name: anonymous, match: '* /*', when: [{ header: { authorization: absent } }, { userAgent: [absent, { contains: a }] }], unless: { query: { token: present } }, requests: 1000000, window: 1m }",
  "{ name: tokens, match: '* /*', mode: shadow, key: { first: ['jwt:sub', asn] }, requests: 1000000, window: 1d, plans: { pro: 2000000 }, plan: 'jwt:plan' }",
  "{ name: abroad, match: '* /*', when: { jwt: { sub: absent } }, unless: [{ country: [FR, XX] }, { asn: AS64511 }], key: [country, host], requests: 1000000, window: week, lease: auto }",
]

/** A table of these rules, after the lines of `before`. */
export function tableOfEveryKind(before: readonly string[] = []): string {
  const { tokenSecret, list, country, asn } = writeTableFiles()
  return `jwt: { secretFile: ${tokenSecret} }
geoip: { country: ${country}, asn: ${asn} }
routes:
  - { name: elsewhere, onlyOver: true, upstream: http://127.0.0.1:9 }
limits:
${[...before, ...rulesOfEveryKind].map((rule) => `  - ${rule}\n`).join('')}
  - { name: in-file, match: '* /*', unless: { ip: { file: ${list} } }, requests: 1000000, window: 1d, allowList: [{ file: ${list} }] }
`
}

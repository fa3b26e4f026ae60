import { isMap, LineCounter, parseDocument, visit, type Pair, type Scalar } from 'yaml'
import { expect, test } from 'vitest'
import { directoryWith, problemsOf } from '../../support/gateway/settings.ts'

/** Has at least one mapping of each kind. The files that it names do not exist, which other messages say. */
const yaml = `
upstream: http://app:3000
allowList:
  - ip: [192.0.2.1, { file: a.txt }]
  - header: { x-probe: 'sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08' }
denyList:
  - file: b.txt
crowdsec: { url: http://127.0.0.1:8000, keyFile: c.key, every: 10s }
cors: { origins: ['*'] }
refusal: { status: 429, body: Slow down, contentType: text/plain, html: d.html, headers: { x-a: b } }
jwt: { jwksUrl: https://issuer.example/keys, issuer: a, audience: b }
geoip: { country: e.mmdb, asn: f.mmdb }
webhooks:
  - url: https://hooks.example
    events: [ban]
requestHeaders: { x-b: c }
rateLimitHeaders: [ietf]
routes:
  - name: api
    hosts: api.example.com
    paths: /v1/*
    upstream: http://api:5000
    balance: round-robin
    stripPrefix: true
    upstreamHost: keep
    requestHeaders: { x-c: d }
    health: { path: /healthz, every: 5s, fails: 3, passes: 2 }
limits:
  - name: a
    match: POST /a
    except: POST /a/b
    hosts: api.example.com
    when:
      - header: { x-d: { prefix: a } }
      - cookie: { b: [{ contains: c }, { is: absent }] }
      - ip: { file: g.txt }
    unless: { userAgent: { contains: bot } }
    key: { first: [body:email, ip] }
    requests: 10
    window: 1m
    cost:
      reserve: { json: max_tokens, else: 4 }
      settle: [{ sum: [json:a, header:b] }, json:c]
      else: estimate
      hide: true
    overrides:
      - clients: { ip: 192.0.2.7 }
        requests: 20
        label: partner
    plans: { free: 10 }
    plan: jwt:plan
    ban: { after: 3, for: 1h, max: 1d, scope: all }
    device: { status: 303, cookie: known, for: 30d }
    mode: shadow
    onStoreError: open
  - name: b
    match: GET /b
    algorithm: token-bucket
    requests: 10
    window: 1s
    burst: 20
    over: { delay: 2s, waiting: 100 }
`

const env = { DEVICE_SECRET: 'x'.repeat(32) }
const before = new Set(problemsOf(env, directoryWith(yaml)))

/** Mappings of this name have names of headers, plans and the like, which cannot be mistyped. */
const ofNames = /^(?:headers|requestHeaders|header|cookie|plans|clients)$/

const fields: Scalar<string>[] = []
const document = parseDocument(yaml, { keepSourceTokens: true })
visit(document, {
  Pair(_key, { key, value }: Pair) {
    fields.push(key as Scalar<string>)
    return isMap(value) && ofNames.test((key as Scalar<string>).value) ? visitNested(value) : undefined
  },
})

/** Visits the tests in `header: { NAME: tests }`. */
function visitNested(names: unknown): symbol {
  visit(names as never, {
    Pair(_key, { value }: Pair) {
      visit(value as never, {
        Pair: (_, { key }) => {
          fields.push(key as Scalar<string>)
        },
      })
      return visit.SKIP
    },
  })
  return visit.SKIP
}

test.each(fields.map((field) => [field.value, field] as const))(
  'a mistyped %s has one message, in its line, which suggests the field',
  (name, { range }) => {
    const [offset = 0] = range ?? []
    const middle = offset + Math.ceil(name.length / 2)
    const mistyped = `${yaml.slice(0, middle)}${yaml.charAt(middle - 1)}${yaml.slice(middle)}`
    const lines = new LineCounter()
    parseDocument(mistyped, { lineCounter: lines })
    const { line } = lines.linePos(offset)
    const word = mistyped.slice(offset, offset + name.length + 1)
    const found = problemsOf(env, directoryWith(mistyped)).filter((problem) => !before.has(problem))
    const about = found.filter((problem) => problem.includes(`unknown field "${word}"`))
    expect(about).toEqual([
      expect.stringMatching(new RegExp(`^sluice\\.yaml:${line}: .*, did you mean ${name}\\?$`)),
    ])
    const rest = found.filter(
      (problem) => problem.startsWith(`sluice.yaml:${line}: `) && problem !== about[0],
    )
    expect(rest).toEqual([])
  },
)

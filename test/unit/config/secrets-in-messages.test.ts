import { expect, test } from 'vitest'
import { directoryWith, problemsOf } from '../../support/gateway/settings.ts'

// Messages about mistakes go to the log and to webhooks, so they must not contain a password. A URL must not contain one at all.

const PASSWORD = 'hunter2-and-more'

const files = {
  upstream: (url: string) => `upstream: ${url}`,
  'upstream of a route': (url: string) => `routes:\n  - { name: a, upstream: ${url} }`,
  'webhooks.url': (url: string) => `webhooks:\n  - { url: ${url}, events: [ban] }`,
  'crowdsec.url': (url: string) => `crowdsec: { url: ${url}, keyFile: sluice.yaml }`,
  'jwt.jwksUrl': (url: string) => `jwt: { jwksUrl: ${url} }`,
  redisUrl: (url: string) => `redisUrl: ${url}`,
  otelExporterOtlpEndpoint: (url: string) => `otelExporterOtlpEndpoint: ${url}`,
}
const urls = [
  `http://user:${PASSWORD}@host:8080/path`,
  `https://:${PASSWORD}@host`,
  `https://${PASSWORD}@host`,
  `ftp://user:${PASSWORD}@host`,
  `redis://user:${PASSWORD}@host`,
  `user:${PASSWORD}@host/path`,
  `http://user:a@${PASSWORD}@host`,
]

const env = { WEBHOOK_SECRET: `whsec_${Buffer.alloc(32).toString('base64')}` }

test.each(Object.entries(files))('%s', (_, write) => {
  for (const url of urls) {
    const problems = problemsOf(env, directoryWith(`${write(JSON.stringify(url))}\nlimits: []\n`))
    expect({ url, problems: problems.length }).not.toEqual({ url, problems: 0 })
    expect(problems.join('\n')).not.toContain(PASSWORD)
  }
})

// The secret may carry the line end of the file or command from which its variable was set.
test.each([
  (value: string) => `requestHeaders: { Authorization: ${value} }`,
  (value: string) => `routes:\n  - { name: a, upstream: http://host, requestHeaders: { X-Key: ${value} } }`,
])('a header for the backend, as in %s', (write) => {
  for (const value of [
    `Basic ${PASSWORD}\n`,
    `${PASSWORD}\u00e9`,
    ` ${PASSWORD}`,
    `${PASSWORD}${'x'.repeat(1024)}`,
  ]) {
    const named = directoryWith(`${write('"${SECRET}"')}\nlimits: []\n`)
    const written = directoryWith(`${write(JSON.stringify(value))}\nlimits: []\n`)
    for (const problems of [problemsOf({ SECRET: value }, named), problemsOf({}, written)]) {
      expect(problems).toHaveLength(1)
      expect(problems.join()).not.toContain(PASSWORD)
    }
  }
})

test.each(['84729103', '-8472.9103', '0x50cdf0f', '8_472', '.inf', 'true'])(
  'a header for the backend without quotes: %s',
  (value) => {
    for (const place of ['', 'routes:\n  - name: a\n    upstream: http://host\n    ']) {
      const problems = problemsOf(
        {},
        directoryWith(`${place}requestHeaders: { X-Key: ${value} }\nlimits: []\n`),
      )
      for (const problem of problems) expect(problem).toContain('got a value that is not shown')
      if (Number.isFinite(Number(value))) expect(problems).toHaveLength(1)
    }
  },
)

test('the path of a webhook, by which chat services know who sends', () => {
  for (const url of [
    `ftp://hooks.example/services/${PASSWORD}`,
    `hooks.example/services/${PASSWORD}`,
    `https:/hooks.example:8443/services/${PASSWORD}`,
    `https://hooks.example/${PASSWORD}#a`,
    `https://hooks.example?token=${PASSWORD} `,
    `https:\\\\hooks.example\\services\\${PASSWORD}#a`,
    `https:/\\hooks.example\\${PASSWORD}`,
    `https://hooks.example\\services/${PASSWORD} `,
    `\\\\hooks.example\\${PASSWORD}`,
    `//hooks.example/${PASSWORD}`,
    `https://hooks.example\uff0f${PASSWORD}#a`,
  ]) {
    const problems = problemsOf(
      env,
      directoryWith(`webhooks:\n  - { url: ${JSON.stringify(url)}, events: [ban] }\n`),
    )
    expect(problems).toHaveLength(1)
    expect(problems.join()).toMatch(/got "[^"]*hooks\.example[^"]*"/)
    expect(problems.join()).not.toContain(PASSWORD)
  }
})

test('a webhook that is a secret without a host, or has one where another URL has its host', () => {
  for (const url of [
    PASSWORD,
    `xoxb-1-${PASSWORD}`,
    `https:///${PASSWORD}`,
    `https:/\\/${PASSWORD}`,
    `https:${PASSWORD}`,
    `https://hooks.example/services/a@${PASSWORD}#a`,
    `https://hooks.example\\a@${PASSWORD}#a`,
    `https://hooks.example?to=me@${PASSWORD}#a`,
    `https://hooks.example\uff0fa@${PASSWORD}#a`,
    `hooks.example/a@${PASSWORD}`,
    `https://user:a/${PASSWORD}@hooks.example/a`,
    `https://user@${PASSWORD}@hooks.example/${PASSWORD}`,
  ]) {
    const problems = problemsOf(
      env,
      directoryWith(`webhooks:\n  - { url: ${JSON.stringify(url)}, events: [ban] }\n`),
    )
    expect(problems).toHaveLength(1)
    expect(problems.join()).not.toContain(PASSWORD)
  }
})

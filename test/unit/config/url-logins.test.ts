import { expect, test } from 'vitest'
import { directoryWith, problemsOf } from '../../support/gateway/settings.ts'

// A password in a URL, where none belongs, is a mistake. Its message, which goes to the log and to webhooks, must not have it.

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

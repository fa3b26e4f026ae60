import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  createRequestClassifier,
  type RequestFieldClassifier,
} from '../../../../proxy/http/fields/header-roles.ts'
import {
  neverForwarded,
  trustedProxyHeaders,
  trustedProxyPrefixes,
} from '../../../../proxy/http/fields/removed-headers.ts'
import { upstreamHeaders } from '../../../../proxy/http/forward/upstream-headers.ts'
import { asRead } from '../../../support/http/as-read.ts'

// The attack: a client sends fields that only the proxy before a backend should send: the removed path prefix, the signed-in user, the
// client's address. Rules have not seen these values.

const page = readFileSync(join(import.meta.dirname, '../../../../docs/http.md'), 'utf8')

const never = neverForwarded
const trustedOnly = [...trustedProxyHeaders, ...trustedProxyPrefixes.map((prefix) => `${prefix}x`)]

/** The name itself, and the spellings that CGI, WSGI, Rack or Java applications read as the same name. */
const spellings = (name: string): string[] => [
  name,
  name.toUpperCase(),
  name.replaceAll('-', '_'),
  name.replace('-', '_'),
  name.replaceAll('-', '.'),
  `HTTP_${name.replaceAll('-', '_').toUpperCase()}`,
  name.replace(/[a-z](?=[^a-z]*$)/, (letter) => `%${letter.charCodeAt(0).toString(16)}`),
]

/** The fields, by name, that the backend gets when a client sends these. */
function seen(
  names: readonly string[],
  options: { trusted?: boolean; named?: boolean; classify?: RequestFieldClassifier } = {},
): Map<string, string> {
  const classify = options.classify ?? createRequestClassifier([], false)
  const { names: sent, values } = upstreamHeaders(classify, asRead(names.flatMap((name) => [name, 'sent'])), {
    peerAddress: '192.0.2.1',
    peerTrusted: options.trusted ?? false,
    clientAddress: '192.0.2.1',
    clientNamed: options.named ?? false,
    scheme: 'http',
    requestId: 'id',
    host: 'a',
    protocolVersion: '1.1',
    maxForwards: undefined,
  })
  const lines = sent.map(({ name }, i) => [name, values[i] ?? ''] as const)
  return new Map(lines.filter(([, value]) => value.includes('sent')))
}

describe('a header that only a proxy should set', () => {
  test.each([...never, ...trustedOnly])('%s does not reach the backend from a client', (name) => {
    expect(seen(spellings(name))).toEqual(new Map())
    const kept = createRequestClassifier([], true)
    expect(seen(spellings(name), { classify: kept })).toEqual(new Map())
  })

  test.each(trustedOnly)('%s reaches the backend from a trusted proxy, in this spelling only', (name) => {
    expect(seen(spellings(name), { trusted: true })).toEqual(new Map([[name, 'sent']]))
  })

  test.each(never)('%s never reaches the backend', (name) => {
    expect(seen(spellings(name), { trusted: true })).toEqual(new Map())
  })

  test('the list in the code and the table in docs/http.md are the same', () => {
    const [, section = ''] = /\n## Headers that only a proxy should set\n([^]*?)\n## /.exec(page) ?? []
    const rows = section.split('\n').filter((line) => /^\| `/.test(line))
    const documented = rows.flatMap((row) => {
      const [, names = '', says = ''] = row.split('|')
      const from = says.includes('always removed') ? 'nobody' : 'trusted'
      return [...names.matchAll(/`([^`]+)`/g)].map(([, name = '']) => `${name.toLowerCase()} ${from}`)
    })
    expect(documented.toSorted()).toEqual(
      [
        ...never.map((name) => `${name} nobody`),
        ...trustedProxyHeaders.map((name) => `${name} trusted`),
        ...trustedProxyPrefixes.map((prefix) => `${prefix}* trusted`),
      ].toSorted(),
    )
  })
})

test.each([
  'accept',
  'authorization',
  'content-type',
  'device-memory',
  'idempotency-key',
  'if-none-match',
  'origin',
  'referer',
  'sec-fetch-site',
  'sec-websocket-key',
  'traceparent',
  'tus-resumable',
  'upgrade-insecure-requests',
  'user-agent',
  'x-amz-date',
  'x-api-key',
  'x-auth-email',
  'x-auth-token',
  'x-auth-user',
  'x-client-version',
  'x-correlation-id',
  'x-csrf-token',
  'x-csrftoken',
  'x-grpc-web',
  'x-http-method-override',
  'x-nextjs-data',
  'x-original-filename',
  'x-requested-with',
  'x-ssh-key',
  'x-stripe-signature',
  'x-user-id',
  'x-xsrf-token',
])('%s is an ordinary header', (name) => {
  expect(seen([name])).toEqual(new Map([[name, 'sent']]))
})

describe('a name with other characters than letters, digits and -', () => {
  const unusual = ['api_key', 'x.y', '__proto__', "x!#$%&'*+-.^`|~9"]

  test.each(unusual)('%s is dropped from any sender', (name) => {
    expect(seen([name])).toEqual(new Map())
    expect(seen([name], { trusted: true })).toEqual(new Map())
  })

  test.each(unusual)('%s is passed on with keepUnusualHeaders', (name) => {
    expect(seen([name], { classify: createRequestClassifier([], true) })).toEqual(new Map([[name, 'sent']]))
  })

  test.each(['x_http_method_override', 'transfer_encoding', 'x_real_ip', 'host_', 'x_forwarded_whatever'])(
    '%s is, or begins like, an alias of a header that the gateway reads, and is dropped with keepUnusualHeaders too',
    (name) => {
      const fields = seen([name], { classify: createRequestClassifier([], true) })
      expect(fields).toEqual(new Map(name === 'host_' ? [[name, 'sent']] : []))
    },
  )
})

describe('the header in which trusted proxies name their client', () => {
  test.each(['cf-connecting-ip', 'x-client'])(
    '%s is passed on where it was believed, and under no alias',
    (name) => {
      for (const keep of [false, true]) {
        const classify = createRequestClassifier([], keep, name)
        expect(seen(spellings(name), { classify, trusted: true, named: true })).toEqual(
          new Map([[name, 'sent']]),
        )
        expect(seen(spellings(name), { classify, trusted: true })).toEqual(new Map())
        expect(seen(spellings(name), { classify })).toEqual(new Map())
      }
    },
  )

  test('the header in which trusted proxies name their client is set by the gateway as before where it is one that it sets', () => {
    for (const name of ['x-real-ip', 'x-forwarded-for']) {
      const classify = createRequestClassifier([], false, name)
      expect([...seen([name], { classify, trusted: true, named: true }).keys()]).toEqual(
        name === 'x-real-ip' ? [] : [name],
      )
    }
  })
})

describe('a header in the key of a rule', () => {
  test('a header in the key of a rule is passed on from everybody, as the one value that was counted', () => {
    const classify = createRequestClassifier(['cf-connecting-ip', 'x_key'], false)
    expect(
      seen(['CF-Connecting-IP', 'cf-connecting-ip', 'CF_Connecting_IP', 'True-Client-IP'], { classify }),
    ).toEqual(new Map([['cf-connecting-ip', 'sent, sent']]))
    expect(seen(['X_Key', 'X.Key'], { classify })).toEqual(new Map([['x_key', 'sent']]))
  })

  test('a header in the key of a rule has no alias beside it, even if the alias is the usual spelling', () => {
    for (const keep of [false, true]) {
      const classify = createRequestClassifier(['x_key'], keep)
      expect(seen(['x_key', 'X-Key', 'x.key'], { classify })).toEqual(new Map([['x_key', 'sent']]))
    }
  })
})

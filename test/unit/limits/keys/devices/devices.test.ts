import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Devices } from '../../../../../proxy/limits/keys/devices/devices.ts'
import { readToken, writeToken } from '../../../../../proxy/limits/keys/devices/device-token.ts'
import { readTokens } from '../../../../../proxy/limits/keys/devices/device-cookie.ts'
import { chargesByBody } from '../../../../../proxy/limits/keys/body/body-charges.ts'
import { KeyBody } from '../../../../../proxy/limits/keys/body/key-body.ts'
import type { SentBody } from '../../../../../proxy/limits/keys/body/body-values.ts'
import { bodyNamesOf } from '../../../../../proxy/limits/keys/body/names/body-names.ts'
import { partitionKeysOf } from '../../../../../proxy/limits/keys/partition-key.ts'
import { readPart, type KeySource } from '../../../../../proxy/limits/keys/part-values.ts'
import type { Charge } from '../../../../../proxy/limits/limiter.ts'
import type { Policy } from '../../../../../proxy/policy.ts'
import type { PartitionPart } from '../../../../../proxy/policy/partition.ts'
import { readTarget } from '../../../../../proxy/request/target/target.ts'
import { runs } from '../../../../support/random/runs.ts'

const dayMs = 24 * 60 * 60 * 1000
const cookie = 'sluice_device'
const user = { kind: 'query', name: 'user' } as const
const email = { kind: 'body', name: 'email', path: ['email'] } as const

function policyOf(partition: readonly PartitionPart[], name = 'account'): Policy {
  return {
    name,
    quota: 5,
    windowMs: 60_000,
    algorithm: 'fixed',
    mode: 'enforce',
    onStoreError: 'local',
    partition,
    device: { cookie, forMs: 90 * dayMs, status: [{ first: 200, last: 299 }] },
  }
}

function sourceOf(query: string, cookies = '', headers: Record<string, string> = {}): KeySource {
  return {
    client: { address: '192.0.2.1', prefix: '192.0.2.1' },
    host: 'app.example',
    target: { forwardTarget: `/login?${query}` },
    headers: { ...headers, ...(cookies !== '' && { cookie: cookies }) },
    claims: undefined,
    addresses: { readClientField: () => undefined },
    body: bodyOf({ unread: 'missing' }, '', `/login?${query}`),
  } as unknown as KeySource
}

function bodyOf(sent: SentBody, type: string, target = '/login'): KeyBody {
  const rawHeaders = type === '' ? [] : ['content-type', type]
  return new KeyBody(sent, { rawHeaders }, target, bodyNamesOf([policyOf([email])]))
}

let nowMs = Date.UTC(2026, 0, 1)
const secret = 's'.repeat(40)
const devicesWith = (...secrets: string[]) => new Devices({ secrets, wallClock: () => nowMs })
const devices = devicesWith(secret)

const ignored = { onUnreadKey: () => undefined }

function chargesOf(policy: Policy, source: KeySource): Charge[] {
  return partitionKeysOf(policy, (part) => readPart(part, source)).map((partitionKey) => ({
    policy,
    partitionKey,
  }))
}

/** The cookie that a sign-in sets; undefined if it sets no cookie. */
function signIn(policy: Policy, source: KeySource, by = devices, method = 'POST'): string | undefined {
  const charges = by.recognize(chargesOf(policy, source), source, method)
  const [set] = by.setCookies(charges, { status: 200, cookies: source.headers.cookie ?? '', isSecure: false })
  return set?.split(';', 1)[0]
}

function outcomesOf(policy: Policy, source: KeySource, by = devices): (string | undefined)[] {
  return by.recognize(chargesOf(policy, source), source, 'POST').map(({ device }) => device?.outcome)
}

const policy = policyOf([user])

describe('a token', () => {
  test('a device cookie is valid for its time, on gateways whose clocks differ a little', () => {
    const device = signIn(policy, sourceOf('user=anna')) ?? ''
    const isKnown = () => outcomesOf(policy, sourceOf('user=anna', device))[0]
    const startMs = nowMs
    for (const [afterMs, outcome] of [
      [0, 'known'],
      [-300_000, 'known'],
      [-301_000, 'unknown'],
      [90 * dayMs - 1000, 'known'],
      [90 * dayMs, 'unknown'],
    ] as const) {
      nowMs = startMs + afterMs
      expect([afterMs, isKnown()]).toEqual([afterMs, outcome])
    }
    nowMs = startMs
  })

  test('a device cookie made with an old secret is valid until that secret is removed', () => {
    const [old, next] = ['o'.repeat(40), 'n'.repeat(40)]
    const ofOld = signIn(policy, sourceOf('user=anna'), devicesWith(old)) ?? ''
    const both = devicesWith(next, old)
    const isKnown = (device: string, by = both) => outcomesOf(policy, sourceOf('user=anna', device), by)
    expect(isKnown(ofOld)).toEqual(['known'])
    const ofNext = signIn(policy, sourceOf('user=anna', ofOld), both) ?? ''
    expect(isKnown(ofNext, devicesWith(next))).toEqual(['known'])
    expect(isKnown(ofOld, devicesWith(next))).toEqual(['unknown'])
  })

  test('a device cookie with any change is not valid', () => {
    const device = signIn(policy, sourceOf('user=anna')) ?? ''
    const start = cookie.length + 1
    fc.assert(
      fc.property(
        fc.nat({ max: 68 }),
        fc.constantFrom('A', 'Z', 'a', 'z', '0', '9', '-', '_'),
        (at, character) => {
          const forged = `${device.slice(0, start + at)}${character}${device.slice(start + at + 1)}`
          expect(outcomesOf(policy, sourceOf('user=anna', forged))).toEqual([
            forged === device ? 'known' : 'unknown',
          ])
        },
      ),
      { numRuns: runs(300) },
    )
  })

  test('rule, key and account of a device cookie cannot run into each other', () => {
    const make = (rule: string, partitionKey: string, account: string) =>
      writeToken(secret, { rule, partitionKey, account }, 1, Buffer.alloc(16))
    const tokens = [
      make('a', 'b', 'c'),
      make('a', 'bc', ''),
      make('ab', '', 'c'),
      make('a:1:b', 'c', ''),
      make('', 'ab', 'c'),
    ]
    expect(new Set(tokens).size).toBe(tokens.length)
    expect(readToken(tokens[0] ?? '')?.seconds).toBe(1)
  })
})

describe('accounts', () => {
  const host = { kind: 'host' } as const
  const header = { kind: 'header', name: 'x-user' } as const
  const firstOf = { kind: 'first', of: [user, header, { kind: 'ip' }] } as const

  test.each<[string, readonly PartitionPart[], KeySource]>([
    ['in the query', [user], sourceOf('user=anna')],
    ['in a header', [header], sourceOf('', '', { 'x-user': 'anna' })],
    ['beside the host', [host, user], sourceOf('user=anna')],
    ['of two parts', [header, user], sourceOf('user=anna', '', { 'x-user': 'shop' })],
    ['in the first of several', [firstOf], sourceOf('', '', { 'x-user': 'anna' })],
  ])('%s', (_, partition, source) => {
    const ofKey = policyOf(partition)
    const device = signIn(ofKey, source) ?? ''
    const again = { ...source, headers: { ...source.headers, cookie: device } }
    expect(outcomesOf(ofKey, again)).toEqual(['known'])
    expect(outcomesOf(policyOf(partition, 'other'), again)).toEqual(['unknown'])
  })

  test.each([
    ['by address, where none is named', 'x=1'],
    ['of a request that names two', 'user=anna&user=bert'],
    ['of a request that names one twice, in two spellings', 'user=anna&user=ANNA'],
    ['of a request that names one with a NUL in it', 'user=anna%00x'],
  ])('%s: nobody gets a device', (_, query) => {
    expect(signIn(policyOf([firstOf]), sourceOf(query))).toBeUndefined()
  })

  test('the owner of an account gets no device for another account, however similar they are', () => {
    const victims = ['anna', 'ANNA', 'anna%20', '%61nna', 'anna+', 'anna%00', '%2561nna', ' anna']
    fc.assert(
      fc.property(fc.constantFrom(...victims), fc.constantFrom(...victims), (mine, yours) => {
        const device = signIn(policy, sourceOf(`user=${mine}`)) ?? ''
        expect(device).not.toBe('')
        const outcomes = outcomesOf(policy, sourceOf(`user=${yours}`, device))
        expect(outcomes).toEqual([mine === yours ? 'known' : 'unknown'])
      }),
      { numRuns: runs(200) },
    )
  })

  const ofBody = policyOf([email])

  function posted(type: string, text: string, cookies = ''): KeySource {
    return { ...sourceOf('', cookies), body: bodyOf({ bytes: Buffer.from(text), isWhole: true }, type) }
  }

  const writers = {
    form: (name: string): [string, string] => ['application/x-www-form-urlencoded', `email=${name}`],
    json: (name: string): [string, string] => ['application/json', JSON.stringify({ email: name })],
    multipart: (name: string): [string, string] => [
      'multipart/form-data; boundary=b',
      `--b\r\nContent-Disposition: form-data; name="email"\r\n\r\n${name}\r\n--b--\r\n`,
    ],
  } as const
  type Format = keyof typeof writers

  test('the owner of an account with a plus in its name gets no device for the account that a form makes of it', () => {
    const write = (format: Format, name: string, cookies?: string): KeySource => {
      const [type, text] = writers[format](name)
      return posted(type, text, cookies)
    }
    for (const mine of ['ann+a', '+anna@example.com', 'a+n+n+a'])
      for (const format of ['json', 'multipart'] as const) {
        const device = signIn(ofBody, write(format, mine)) ?? ''
        expect(device).not.toBe('')
        expect(outcomesOf(ofBody, write(format, mine, device))).toEqual(['known'])
        expect(outcomesOf(ofBody, write('form', mine, device))).toEqual(['unknown'])
        const ofForm = signIn(ofBody, write('form', mine)) ?? ''
        expect(outcomesOf(ofBody, write(format, mine, ofForm))).toEqual(['unknown'])
      }
  })

  // The owner of one account signs in, and the backend reads one of the two names: the gateway counts nothing for the other one.
  test.each(['+', '%20', '%e2%80%8b', '%00', '++', '%2b', '%2520'])(
    'a request that names an account of blanks, too, gets no device: %s',
    (blank) => {
      for (const query of [`user=anna&user=${blank}`, `user=${blank}&user=anna`, `USER[]=${blank}&user=anna`])
        expect([query, signIn(policy, sourceOf(query))]).toEqual([query, undefined])
      const [form] = writers.form('')
      expect(signIn(ofBody, posted(form, `email=anna&email=${blank}`))).toBeUndefined()
      const text = decodeURIComponent(blank)
      const members = `{"email":"anna","email":${JSON.stringify(text)}}`
      expect(signIn(ofBody, posted('application/json', members))).toBeUndefined()
      const [multipart, parts] = writers.multipart('anna')
      const both = parts.replace('--b--', writers.multipart(text)[1])
      expect(signIn(ofBody, posted(multipart, both))).toBeUndefined()
      const either = policyOf([
        { kind: 'first', of: [email, { ...email, name: 'login', path: ['login'] }, { kind: 'ip' }] },
      ])
      const sent = { bytes: Buffer.from(`email=anna&login=${blank}`), isWhole: true }
      const body = new KeyBody(sent, { rawHeaders: ['content-type', form] }, '/login', bodyNamesOf([either]))
      expect(signIn(either, { ...sourceOf(''), body })).toBeUndefined()
    },
  )

  test('an empty field next to the account does not count as another account', () => {
    expect(signIn(policy, sourceOf('user=&user=anna'))).toBeDefined()
    expect(signIn(ofBody, posted(writers.form('')[0], 'email=&email=anna'))).toBeDefined()
    expect(signIn(ofBody, posted('application/json', '{"email":"","email":"anna"}'))).toBeDefined()
  })

  describe('a name that few backends take for another', () => {
    const write = (name: string, cookies = ''): KeySource => posted(...writers.json(name), cookies)
    const charged = (source: KeySource): readonly Charge[] => {
      const { body } = source
      if (!body) throw new Error('no body')
      const charges = chargesByBody(ofBody, (part) => readPart(part, source), body, '192.0.2.1', ignored)
      return devices.recognize(charges ?? [], source, 'POST')
    }
    const cookieFor = (name: string): string => {
      const [set = ''] = devices.setCookies(charged(write(name)), {
        status: 200,
        cookies: '',
        isSecure: false,
      })
      return set.split(';', 1)[0] ?? ''
    }

    test.each(['ad&x;min', 'ad<b>min', '\ud835\udcb6dmin'])(
      'has devices, which nobody else can hinder: %s',
      (name) => {
        const device = cookieFor(name)
        expect(device).not.toBe('')
        const strangers = charged(write(name))
        expect(strangers.length).toBeGreaterThan(1)
        const known = charged(write(name, device))
        expect(known.map((charge) => charge.device?.outcome)).toEqual(strangers.map(() => 'known'))
        const keys = new Set(strangers.map(({ partitionKey }) => partitionKey))
        expect(known.filter(({ partitionKey }) => keys.has(partitionKey))).toEqual([])
      },
    )

    test('a request that names the other account too sets no device cookie', () => {
      const both = posted('application/json', '{"email":"ad&x;min","email":"admin"}', cookieFor('ad&x;min'))
      expect(charged(both).map(({ device }) => device?.outcome)).toEqual(['known', 'unknown'])
      const set = devices.setCookies(charged(both), { status: 200, cookies: '', isSecure: false })
      expect(set).toEqual([])
    })

    test('a device of one account is not known for the other', () => {
      const outcomes = (name: string, device: string) =>
        charged(write(name, device)).map((charge) => charge.device?.outcome)
      expect(outcomes('admin', cookieFor('ad&x;min'))).toEqual(['unknown'])
      expect(outcomes('ad&x;min', cookieFor('admin'))).toEqual(['unknown', 'unknown'])
    })
  })

  const names = ['_method', '%5fmethod', '_METHOD', '_meth%6fd', 'x=1&_method']
  const overriding = fc.constantFrom('get', 'GET', 'Head', 'options', '%67et', 'get%00', ' get')

  test('a request that a backend may take for one with another method gets no device', () => {
    const [type] = writers.form('anna')
    const owned = signIn(ofBody, posted(type, 'email=anna&password=x')) ?? ''
    expect(owned).not.toBe('')
    fc.assert(
      fc.property(fc.constantFrom(...names), overriding, (name, method) => {
        const field = `${name}=${method}`
        expect(signIn(ofBody, posted(type, `email=anna&${field}`))).toBeUndefined()
        expect(outcomesOf(ofBody, posted(type, `${field}&email=anna`, owned))).toEqual(['unknown'])
        expect(signIn(policy, sourceOf(`user=anna&${field}`))).toBeUndefined()
      }),
      { numRuns: runs(50) },
    )
    const multipart = writers
      .multipart('anna')[1]
      .replace('--b--', '--b\r\nContent-Disposition: form-data; name="_method"\r\n\r\nget\r\n--b--')
    expect(signIn(ofBody, posted(writers.multipart('')[0], multipart))).toBeUndefined()
    expect(signIn(ofBody, posted('application/json', '{"email":"anna","_method":"GET"}'))).toBeUndefined()
    for (const name of [
      'x-http-method-override',
      'x_http_method_override',
      'x-http-method',
      'x-method-override',
    ])
      expect(signIn(policy, sourceOf('user=anna', '', { [name]: 'GET' }))).toBeUndefined()
    // A backend that ignores the header or the field treats it as a request for the form.
    expect(signIn(policy, sourceOf('user=anna&_method=post'), devices, 'GET')).toBeUndefined()
    const inHeader = sourceOf('user=anna', '', { 'x-http-method-override': 'POST' })
    expect(signIn(policy, inHeader, devices, 'GET')).toBeUndefined()
    // Forms that repeat the actual method, and JSON-RPC.
    expect(signIn(ofBody, posted(type, 'email=anna&_method=post'))).toBeDefined()
    expect(signIn(ofBody, posted('application/json', '{"method":"login","email":"anna"}'))).toBeDefined()
    expect(signIn(policy, sourceOf('user=anna', '', { 'x-http-method-override': 'POST' }))).toBeDefined()
  })

  test('a request with a method that no backend has a page for gets no device, but one of JSON-RPC does', () => {
    const [form] = writers.form('anna')
    const [multipart, parts] = writers.multipart('anna')
    const inPart = (name: string) =>
      parts.replace('--b--', `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\nFOO\r\n--b--`)
    const partOf = (name: string, value: string) =>
      `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
    const wide = Buffer.from('{"email":"anna","_method":"foo"}', 'utf16le').toString('latin1')
    for (const [type, text] of [
      [form, 'email=anna&_method=PROPFIND'],
      [form, 'email=anna&_method=foo'],
      [form, 'email=anna&%5fmethod=foo'],
      [form, 'email=anna&x;.method=foo'],
      [form, '[method=foo&email=anna'],
      [form, 'email=anna&_meth%256fd=foo&method=login'],
      [form, 'email=anna&_method='],
      [form, '_method=&email=anna&_method=post'],
      [form, '_method=&email=anna&method=post'],
      [form, '_method=&email=anna&[method][]=post'],
      [form, '_method=&email=anna&m-e%3dthod=post'],
      [form, '_method=&email=anna&me%e1%ba%97hod=post'],
      [form, '_method=&email=anna&%256dethod=post'],
      [form, '_method&email=anna&method=post'],
      ['application/json', '{"email":"anna","_method":"","method":"post"}'],
      ['application/json', '{"email":"anna","_method":"","me\\u1e97hod":"post"}'],
      ['application/json', '{"email":"anna","_method":null,"method":"post"}'],
      [
        multipart,
        inPart('_method')
          .replace('FOO', '')
          .replace('--b\r', `${partOf('method', 'post')}--b\r`),
      ],
      [form, '_method&email=anna'],
      [form, 'email=anna&_method=+post'],
      [form, 'email=anna&_method=post%20'],
      [form, 'email=anna&_method=post%00'],
      [form, 'email=anna&_method=%ef%bd%90ost'],
      [form, '_method=post&email=anna&_method[]=x'],
      ['application/json', '{"email":"anna","_method":""}'],
      ['application/json', '{"email":"anna","_method":null}'],
      [multipart, inPart('_method').replace('FOO', '')],
      [multipart, inPart('_method').replace('FOO', 'post ')],
      [multipart, inPart('_method')],
      ['application/json', '{"email":"anna","_method":"foo"}'],
      ['application/json', '{"email":"anna","\\u005f\\u006Dethod":"foo"}'],
      ['application/json', wide],
    ] as const)
      expect([text, signIn(ofBody, posted(type, text))]).toEqual([text, undefined])
    for (const method of ['foo', '', '+post'])
      expect(signIn(policy, sourceOf(`user=anna&_method=${method}`))).toBeUndefined()
    for (const [type, text] of [
      [form, 'email=anna&method=totp&payment_method=card&a[method]=b'],
      [multipart, inPart('method')],
      [multipart, inPart('_method').replace('FOO', 'POST')],
      [form, 'email=anna&_method=POST'],
      [form, 'email=anna&_method=POST&payment_method=card&next=/payment/methods'],
      [form, 'email=anna&method=post&_method=post'],
      ['application/json', '{"email":"anna","_method":"post"}'],
      ['application/json', '{ "email": "anna", "_method": "post" }'],
      [
        'application/json',
        '{"jsonrpc":"2.0","method":"login","params":{"payment_method":"x"},"email":"anna"}',
      ],
    ] as const)
      expect([text, signIn(ofBody, posted(type, text))]).toEqual([text, expect.any(String)])
  })

  test('a cookie named method gives the request no other method, wherever it stands', () => {
    const bytes = Buffer.from('email=anna')
    for (const cookies of ['method=sms', 'a=1; method=sms', 'a=1;method=sms;b=2', 'a.=1; method=sms']) {
      const rawHeaders = ['content-type', 'application/x-www-form-urlencoded', 'cookie', cookies]
      const body = new KeyBody({ bytes, isWhole: true }, { rawHeaders }, '/login', bodyNamesOf([ofBody]))
      expect([cookies, signIn(ofBody, { ...sourceOf(''), body })]).toEqual([cookies, expect.any(String)])
    }
  })

  test('a request whose body is not read, or not all of it, gets no device, whatever its key', () => {
    const [type, text] = writers.form('anna')
    const bytes = Buffer.from(text)
    const device = signIn(policy, sourceOf('user=anna')) ?? ''
    for (const [sent, coding] of [
      [{ unread: 'memory' }],
      [{ bytes, isWhole: false }],
      [{ bytes, isWhole: true }, 'compress'],
    ] as const) {
      const rawHeaders = ['content-type', type, ...(coding ? ['content-encoding', coding] : [])]
      const body = new KeyBody(sent, { rawHeaders }, '/login', bodyNamesOf([policy]))
      expect(signIn(policy, { ...sourceOf('user=anna'), body })).toBeUndefined()
      expect(outcomesOf(policy, { ...sourceOf('user=anna', device), body })).toEqual(['unknown'])
    }
  })

  test('a device is known for the method and path that it signed in with', () => {
    const at = (path: string, cookies = ''): KeySource => {
      const source = sourceOf('user=anna', cookies)
      const target = { ...source.target, forwardTarget: `${path}?user=anna` }
      return { ...source, target }
    }
    for (const path of ['/login', '/api/login', '/login/', '/LOGIN', '/login;x', '/login%2f', '/login/x']) {
      const device = signIn(policy, at(path)) ?? ''
      expect(outcomesOf(policy, at(path, device))).toEqual(['known'])
      expect([path, outcomesOf(policy, at('/signin', device))]).toEqual([path, ['unknown']])
      const isSame = path === '/login'
      expect(outcomesOf(policy, at('/login', device))).toEqual([isSame ? 'known' : 'unknown'])
    }
    const shown = signIn(policy, at('/login'), devices, 'GET') ?? ''
    expect(outcomesOf(policy, at('/login', shown))).toEqual(['unknown'])
  })

  test('a device is known for the host that it signed in with, in any letter case', () => {
    const hosts = [
      'app.example',
      'app.example:8443',
      'app.example:80',
      'app.example.',
      'www.example',
      'example',
    ]
    const others = ['app.example.org', 'xapp.example', '192.0.2.1', '[2001:db8::1]', '[2001:db8:0::1]']
    const at = (host: string, cookies = ''): KeySource => ({ ...sourceOf('user=anna', cookies), host })
    const all = fc
      .constantFrom(...hosts, ...others)
      .chain((host) => fc.constantFrom(host, host.toUpperCase()))
    fc.assert(
      fc.property(all, all, (first, then) => {
        const device = signIn(policy, at(first)) ?? ''
        const isSame = first.toLowerCase() === then.toLowerCase()
        expect(outcomesOf(policy, at(then, device))).toEqual([isSame ? 'known' : 'unknown'])
      }),
      { numRuns: runs(100) },
    )
  })

  describe('path parameters', () => {
    const byPath = policyOf([{ kind: 'path', name: 'name', patterns: ['/m/:name/login'] }])
    const at = (sent: string, cookies = ''): KeySource => {
      const target = readTarget('POST', sent)
      if (typeof target === 'string') throw new Error(target)
      return { ...sourceOf('', cookies), target }
    }
    const sessionId = fc.stringMatching(/^[\w.!:-]{0,12}$/)
    const cases = [
      [policy, '/login', '?user=anna'],
      [policy, '/a/login', '?user=anna'],
      [byPath, '/m/anna/login', ''],
    ] as const

    test.each(cases)(
      'the owner of an account is known with another session in the path: %#',
      (of, path, query) => {
        fc.assert(
          fc.property(sessionId, sessionId, (first, second) => {
            const device = signIn(of, at(`${path};jsessionid=${first}${query}`)) ?? ''
            expect(device).not.toBe('')
            expect(outcomesOf(of, at(`${path};jsessionid=${second}${query}`, device))).toEqual(['known'])
          }),
          { numRuns: runs(50) },
        )
      },
    )

    test.each(cases)(
      'a device without parameters is known with them, and keeps its token: %#',
      (of, path, query) => {
        const plain = signIn(of, at(path + query)) ?? ''
        const inPath = at(`${path};jsessionid=A${query}`, plain)
        expect(outcomesOf(of, inPath)).toEqual(['known'])
        const both = signIn(of, inPath) ?? ''
        expect(both.split('.')).toHaveLength(2)
        for (const parameters of ['', ';jsessionid=B'])
          expect(outcomesOf(of, at(path + parameters + query, both))).toEqual(['known'])
        expect((signIn(of, at(path + query, both)) ?? '').split('.')).toHaveLength(2)
      },
    )

    // For a service that treats `;` as part of the name, the path may be a page that answers 200 to anything.
    test.each(['/login;', '/login;x', '/login;x=1', '/login;jsessionid=A', '/;x/login', '/;/login'])(
      '%s: its device is not known at the path without parameters',
      (path) => {
        const device = signIn(policy, at(`${path}?user=anna`)) ?? ''
        expect(device).not.toBe('')
        for (const other of [
          '/login',
          '/login;other=1',
          '/login;x;y',
          '/login;y=x',
          '/login/;x=1',
          '//login;x=1',
        ])
          expect([other, outcomesOf(policy, at(`${other}?user=anna`, device))]).toEqual([other, ['unknown']])
      },
    )

    test('an account with a parameter in its name is not the one without', () => {
      for (const [mine, yours] of [
        ['anna;x=1', 'anna'],
        ['anna;x=1', 'anna;x=2'],
        ['anna', 'anna;x=1'],
        ['anna', 'ANNA'],
      ] as const) {
        const device = signIn(byPath, at(`/m/${mine}/login`)) ?? ''
        expect(outcomesOf(byPath, at(`/m/${yours}/login`, device))).not.toContain('known')
      }
    })
  })

  test('each account of a request is looked at separately', () => {
    const device = signIn(policy, sourceOf('user=anna')) ?? ''
    expect(outcomesOf(policy, sourceOf('user=anna&user=bert', device))).toEqual(['known', 'unknown'])
  })
})

describe('what a client can make the gateway do', () => {
  const token = () => randomBytes(52).toString('base64url')

  /** A token with the current time that no secret has signed. */
  const recent = () => {
    const bytes = randomBytes(52)
    bytes.writeUInt32BE(Math.floor(nowMs / 1000))
    return bytes.toString('base64url')
  }

  test.each<[string, () => string[]]>([
    ['eight', () => Array.from({ length: 8 }, recent)],
    ['thirty', () => Array.from({ length: 30 }, recent)],
    ['two hundred random ones', () => Array.from({ length: 200 }, token)],
    ['three full ones', () => Array.from({ length: 3 }, () => Array.from({ length: 30 }, recent).join('.'))],
  ])('other cookies with the name before that of the device do not hide it: %s', (_, others) => {
    const device = signIn(policy, sourceOf('user=anna')) ?? ''
    const cookies = [...others().map((value) => `${cookie}=${value}`), device].join('; ')
    expect(outcomesOf(policy, sourceOf('user=anna', cookies))).toEqual(['known'])
  })

  test('a request with more cookies of the name than are compared counts by account', () => {
    const device = signIn(policy, sourceOf('user=anna')) ?? ''
    const junk = Array.from({ length: 40 }, () => `${cookie}=${recent()}`)
    expect(outcomesOf(policy, sourceOf('user=anna', [...junk, device].join('; ')))).toEqual(['unknown'])
  })

  test('a cookie holds eight tokens, and no more of it are read', () => {
    const value = Array.from({ length: 20 }, token).join('.')
    expect(readTokens(`${cookie}=${value}`, cookie)).toHaveLength(8)
    expect(
      readTokens(Array.from({ length: 300 }, () => `${cookie}=${token()}`).join('; '), cookie),
    ).toHaveLength(256)
    let held = ''
    for (let i = 0; i < 12; i++) held = signIn(policy, sourceOf(`user=anna-${i}`, held)) ?? ''
    const known = Array.from(
      { length: 12 },
      (_, i) => outcomesOf(policy, sourceOf(`user=anna-${i}`, held))[0],
    )
    expect(known).toEqual([...Array<string>(4).fill('unknown'), ...Array<string>(8).fill('known')])
  })

  test('only a limited number of accounts in a request is compared', () => {
    const users = Array.from({ length: 8 }, (_, i) => `user=anna-${i}`)
    const device = signIn(policy, sourceOf('user=anna-7')) ?? ''
    const junk = Array.from({ length: 7 }, recent)
    const cookies = `${cookie}=${junk.join('.')}; ${device}`
    // Comparing the last account would be the 64th comparison.
    expect(outcomesOf(policy, sourceOf(users.join('&'), cookies)).at(-1)).toBe('unknown')
    expect(outcomesOf(policy, sourceOf(users.slice(7).join('&'), cookies))).toEqual(['known'])
  })

  test('tokens that are no longer valid are not kept', () => {
    const junk = `${cookie}=${'A'.repeat(70)}.x.${'B'.repeat(71)}`
    expect(signIn(policy, sourceOf('user=anna', junk))).toMatch(/^sluice_device=[\w-]{70}$/)
  })
})

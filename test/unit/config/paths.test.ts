import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadGatewaySettings } from '../../../proxy/config/settings.ts'
import { problemsOf } from '../../support/gateway/settings.ts'
import { certificateFiles } from '../../support/network/certificates.ts'
import { makeTemporaryDirectory } from '../../support/run/temporary-directory.ts'

// A path in the file means the same file wherever the gateway is started, because a mounted folder or a repository moves as a whole.

const { cert, key } = certificateFiles('first')
const jwt = 'issuer: https://id.example\n  audience: api'
const byUser = 'limits: [{ name: a, match: GET /, key: "jwt:sub", requests: 1, window: 1m }]'

/** Each field of the file that takes a path, with a valid file. */
const places: Record<string, string> = {
  tlsCertFile: 'tlsCertFile: x/cert.pem\ntlsKeyFile: x/key.pem',
  redisUrl: 'redisUrl: rediss://r?ca=x/cert.pem&cert=x/cert.pem&key=x/key.pem',
  upstreamCaFile: 'upstream: https://app\nupstreamCaFile: x/cert.pem',
  'routes upstreamCaFile':
    'routes: [{ name: app, hosts: [a.example], upstream: "https://app", upstreamCaFile: x/cert.pem }]',
  bodyFile: 'refusal: { bodyFile: x/text.txt }',
  html: 'refusal: { html: x/text.html }',
  'limits bodyFile':
    'limits: [{ name: a, match: GET /, requests: 1, window: 1m, refusal: { bodyFile: x/text.txt } }]',
  'limits html':
    'limits: [{ name: a, match: GET /, requests: 1, window: 1m, refusal: { html: x/text.html } }]',
  secretFile: `jwt:\n  ${jwt}\n  secretFile: x/secret\n${byUser}`,
  keyFile: 'crowdsec: { url: http://127.0.0.1:8000, keyFile: x/secret }',
  'denyList file': 'denyList: [{ file: x/text.txt }]',
  'limits allowList file':
    'limits: [{ name: a, match: GET /, requests: 1, window: 1m, allowList: [{ ip: { file: x/text.txt } }] }]',
  jwksFile: `jwt:\n  ${jwt}\n  jwksFile: x/keys.json\n${byUser}`,
}

function fill(folder: string): void {
  mkdirSync(join(folder, 'x'))
  copyFileSync(cert, join(folder, 'x/cert.pem'))
  copyFileSync(key, join(folder, 'x/key.pem'))
  for (const name of ['text.txt', 'text.html', 'secret'])
    writeFileSync(join(folder, 'x', name), 's'.repeat(40))
  const ofKey = { kty: 'oct', kid: '1', k: Buffer.alloc(32, 7).toString('base64url') }
  writeFileSync(join(folder, 'x/keys.json'), JSON.stringify({ keys: [ofKey] }))
}

test('these are all the fields with paths', () => {
  const schema = readFileSync(join(import.meta.dirname, '../../../sluice.schema.json'), 'utf8')
  const fields = new Set([...schema.matchAll(/"(\w+File|html)": \{/g)].map(([, field]) => field))
  const text = Object.values(places).join('\n')
  expect([...fields].filter((field) => !text.includes(`${field}:`))).toEqual([])
})

test.each(Object.entries(places))('%s is relative to the folder of the file', (_place, yaml) => {
  const [cwd, folder] = [makeTemporaryDirectory(), makeTemporaryDirectory()]
  writeFileSync(join(folder, 'sluice.yaml'), `${yaml}\n`)
  const env = { CONFIG_FILE: join(folder, 'sluice.yaml') }
  fill(cwd)
  expect(problemsOf(env, cwd).join('\n')).toMatch(/ENOENT/)
  fill(folder)
  expect(problemsOf(env, cwd)).toEqual([])
  const { settings } = loadGatewaySettings(env, cwd)
  const paths = JSON.stringify(settings).match(/"[^"]*\/x\/[^"]*"/g) ?? []
  expect(paths.filter((path) => !path.startsWith(`"${folder}/x/`))).toEqual([])
})

test('a relative path in a variable starts at the working directory, even beside a file with others', () => {
  const [cwd, folder] = [makeTemporaryDirectory(), makeTemporaryDirectory()]
  fill(cwd)
  fill(folder)
  writeFileSync(
    join(folder, 'sluice.yaml'),
    'upstream: https://app\nupstreamCaFile: x/cert.pem\ntlsCertFile: x/cert.pem\n',
  )
  const { settings } = loadGatewaySettings(
    { CONFIG_FILE: join(folder, 'sluice.yaml'), TLS_CERT_FILE: 'x/cert.pem', TLS_KEY_FILE: 'x/key.pem' },
    cwd,
  )
  expect(settings).toMatchObject({
    upstreamCaFile: join(folder, 'x/cert.pem'),
    tlsCertFile: join(cwd, 'x/cert.pem'),
    tlsKeyFile: join(cwd, 'x/key.pem'),
  })
})

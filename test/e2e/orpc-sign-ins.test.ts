import { beforeAll, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

// oRPC also takes a call in a form: the field `data` has the JSON, in which `maps` names the places whose values are in other fields.
// Attackers add fields that name another account in each guess.

const table = `limits:
  - name: sign-in
    match: POST /rpc/auth/login
    key: body:json.email
    requests: 2
    window: 15m
`

let gateway: HostedGateway
let addresses = 0

beforeAll(async () => {
  const backend = await startBackend((_, response) => {
    response.end()
  })
  gateway = await startHosted({ UPSTREAM_URL: backend.url, CONFIG_FILE: writeConfigFile(table) })
})

/** Sends a form three times, each time from a new address and with a decoy, and returns the statuses. */
async function sendThrice(fields: Readonly<Record<string, string>>): Promise<number[]> {
  const headers = { 'content-type': 'multipart/form-data; boundary=a' }
  const statuses: number[] = []
  for (let i = 0; i < 3; i++) {
    const all = { ...fields, 'json[email]': `decoy-${++addresses}` }
    const parts = Object.entries(all).map(
      ([name, text]) => `--a\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${text}\r\n`,
    )
    const body = `${parts.join('')}--a--\r\n`
    const from = `127.0.13.${addresses}`
    statuses.push((await gateway.send('POST', '/rpc/auth/login', { headers, body, from })).status)
  }
  return statuses
}

test('a call in a form counts by its own members', async () => {
  expect(await sendThrice({ data: '{"json":{"email":"anna"},"meta":[],"maps":[]}' })).toEqual([200, 200, 429])
})

test('a call in a form whose account is in another field is refused', async () => {
  const data = '{"json":{"email":null},"meta":[],"maps":[["email"]]}'
  expect(await sendThrice({ data, 0: 'berta' })).toEqual([400, 400, 400])
})

test('a call with a file in another field counts by its account', async () => {
  const data = '{"json":{"email":"carla","photo":{}},"meta":[],"maps":[["photo"]]}'
  expect(await sendThrice({ data, 0: 'bytes' })).toEqual([200, 200, 429])
})

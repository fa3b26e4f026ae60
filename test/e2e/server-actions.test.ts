import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

// The script of a page of Next.js sends a form to a server action with a prefix before each name: `_1_email`. React takes any text for the
// prefix, if the arguments of the action name it, so that an attacker could use a new name for each guess.

const table = `limits:
  - name: account
    match: POST /sign-in
    key: { first: [body:email, body:email_address] }
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

/** Signs in with the account in a field of this name, from a new address, and returns the status. */
async function signIn(name: string, account: string, root: string): Promise<number> {
  const field = (of: string, text: string): string =>
    `--a\r\nContent-Disposition: form-data; name="${of}"\r\n\r\n${text}\r\n`
  const body = `${field(name, account)}${field('0', root)}--a--\r\n`
  const headers = { 'content-type': 'multipart/form-data; boundary=a' }
  return (await gateway.send('POST', '/sign-in', { headers, body, from: `127.0.10.${++addresses}` })).status
}

test.each(['email', 'email_address'])(
  'a form sent to a server action counts for its field %s',
  async (name) => {
    const statuses = [
      await signIn(`_1_${name}`, name, '["$K1"]'),
      await signIn(`_other_one_${name}`, name, '["$Kother_one"]'),
      await signIn(`1_${name}`, name, '["$K1"]'),
      await signIn(`_${'_'.repeat(99)}_${name}`, name, String.raw`["\u0024\u004b${'_'.repeat(99)}"]`),
    ]
    expect(statuses).toEqual([200, 200, 429, 429])
  },
)

test('a field with another word before the name counts for nobody without a server action', async () => {
  const statuses: number[] = []
  for (let i = 0; i < 3; i++) statuses.push(await signIn('backup_email', 'anna', '[]'))
  expect(statuses).toEqual([200, 200, 200])
})

describe.each([
  ['a place in its own object', '[{"email":"$0:0:x","x":"berta"}]'],
  ['a place, with escapes', String.raw`[{"email":"\u0024\u0030:0:x","x":"berta"}]`],
  ['an object in another argument', '["$0:1:x",{"x":{"email":"berta"}}]'],
])('an account that is %s', (_, body) => {
  const send = async (headers: Record<string, string>): Promise<number> =>
    (await gateway.send('POST', '/sign-in', { headers, body, from: `127.0.10.${++addresses}` })).status

  test('a reference in place of the account is refused in a server action', async () => {
    expect(await send({ 'content-type': 'text/plain;charset=UTF-8', 'next-action': 'a' })).toBe(400)
  })

  test('a text in the form of a reference is a usual value in any other request', async () => {
    expect(await send({ 'content-type': 'application/json' })).toBe(200)
  })
})

test('a text of a server action that begins with a dollar counts as it is', async () => {
  const headers = { 'content-type': 'text/plain;charset=UTF-8', 'next-action': 'a' }
  const body = '[{"email":"$$5"}]'
  const statuses: number[] = []
  for (let i = 0; i < 3; i++)
    statuses.push(
      (await gateway.send('POST', '/sign-in', { headers, body, from: `127.0.10.${++addresses}` })).status,
    )
  expect(statuses).toEqual([200, 200, 429])
})

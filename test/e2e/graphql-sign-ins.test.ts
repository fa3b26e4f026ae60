import { beforeAll, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

// GraphQL Yoga and other services also take a request, or a batch, from the field `operations` of a multipart body, and answer 200 to a
// batch. Attackers choose the form: in a field that the gateway does not read, each of their addresses would have guesses of its own.

const table = `limits:
  - name: account
    match: POST /graphql
    key: body:variables.email
    requests: 2
    window: 15m
    countStatus: [401]
    device: { status: [2xx] }
`

let gateway: HostedGateway
let addresses = 0

beforeAll(async () => {
  const backend = await startBackend(({ url }, response) => {
    response.writeHead(Number(url?.split('=')[1])).end()
  })
  gateway = await startHosted({
    UPSTREAM_URL: backend.url,
    CONFIG_FILE: writeConfigFile(table),
    DEVICE_SECRET: 'a-secret-of-thirty-two-characters-or-more',
  })
})

const operationOf = (email: string, query = 'mutation { signIn -- }'): string =>
  JSON.stringify({ query, variables: { email, password: 'guess' } })

/** Sends a multipart body three times, each time from a new address, and returns the statuses and cookies of the replies. */
async function sendThrice(operations: readonly string[], status: number): Promise<unknown[]> {
  const field = (name: string, text: string): string =>
    `--a\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${text}\r\n`
  const fields = operations.map((each) => field('operations', each)).join('')
  const body = `${fields}${field('map', '{}')}--a--\r\n`
  const headers = { 'content-type': 'multipart/form-data; boundary=a' }
  const replies: unknown[] = []
  for (let i = 0; i < 3; i++) {
    const from = `127.0.9.${++addresses}`
    const reply = await gateway.send('POST', `/graphql?status=${status}`, { headers, body, from })
    replies.push(reply.status, ...(reply.headers['set-cookie'] ?? []))
  }
  return replies
}

test('a GraphQL request in a multipart body counts by its own members', async () => {
  expect(await sendThrice([operationOf('anna')], 401)).toEqual([401, 401, 429])
})

test('a GraphQL request in a multipart body counts by members after a long query', async () => {
  const operation = operationOf('frida', `#${'x'.repeat(50_000)}`)
  expect(await sendThrice([operation], 401)).toEqual([401, 401, 429])
})

test.each(['[', ' \r\n['])(
  'a GraphQL batch in a multipart body that begins %j counts whatever its status, and makes no device known',
  async (opening) => {
    const email = `bob-${opening.length}`
    expect(await sendThrice([`${opening}${operationOf(email)}]`], 200)).toEqual([200, 200, 429])
  },
)

test('the requests of a GraphQL batch in a multipart body count one by one', async () => {
  const batch = (size: number, email: string): string => `[${Array(size).fill(operationOf(email)).join(',')}]`
  expect(await sendThrice([batch(2, 'carla')], 200)).toEqual([200, 429, 429])
  expect(await sendThrice([batch(3, 'dora')], 200)).toEqual([429, 429, 429])
})

test('a multipart body with many GraphQL requests is refused', async () => {
  const many = Array.from({ length: 5 }, (_, i) => operationOf(`emil-${i}`))
  expect(await sendThrice(many, 401)).toEqual([400, 400, 400])
})

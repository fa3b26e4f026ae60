import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { startBackend } from '../support/http/backend.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

// Tomcat accepts a form sign-in below every path of an application, so an attacker could use a new path for each guess. The table in
// docs/backends.md must count all of them.

const page = readFileSync(join(import.meta.dirname, '../../docs/backends.md'), 'utf8')
const [, table = ''] = /```yaml\n(# sluice\.yaml\n(?:(?!```)[^])*?j_security_check[^]*?)```/.exec(page) ?? []

const spellings = [
  'j_security_check',
  'j_security_check;jsessionid=1',
  '/j_security_check',
  'J_Security_Check',
]

/** Each spelling of the path, below `depth` folders. */
function pathsBelow(depth: number): string[] {
  const folders = Array.from({ length: depth }, (_, level) => `/f${level}`).join('')
  return spellings.map((spelling) => `/shop${folders}/${spelling}`)
}

/** Answers as Tomcat does whose error page is a file: `If-None-Match` turns its 200 into 412. */
async function start(): Promise<HostedGateway> {
  const backend = await startBackend(({ headers }, response) => {
    response.writeHead(headers['if-none-match'] === undefined ? 200 : 412).end('wrong')
  })
  return startHosted({
    UPSTREAM_URL: backend.url,
    CONFIG_FILE: writeConfigFile(table),
    DEVICE_SECRET: 'x'.repeat(40),
    TRUSTED_PROXIES: 'loopback',
  })
}

test('guesses at an account below every path of a servlet application', async () => {
  const gateway = await start()
  let address = 0
  const post = async (path: string, body: string): Promise<number> => {
    const headers = {
      'content-type': 'application/x-www-form-urlencoded',
      'x-forwarded-for': `198.51.100.${++address}`,
    }
    return (await gateway.send('POST', path, { headers, body })).status
  }
  const guess = async (paths: readonly string[]): Promise<number> => {
    const statuses = await Promise.all(paths.map((path) => post(path, 'j_username=anna&j_password=wrong')))
    return statuses.filter((status) => status === 200).length
  }

  expect(await guess([0, 1, 2].flatMap(pathsBelow))).toBe(5)
  expect(await guess([3, 4, 9].flatMap(pathsBelow))).toBe(5)
  // A long body may contain the account beyond the part that the gateway reads.
  const padded = `x=${'x'.repeat(70_000)}&j_username=anna`
  expect(await Promise.all([0, 4].map((depth) => post(pathsBelow(depth)[0] ?? '', padded)))).toEqual([
    400, 400,
  ])
  const others = await Promise.all(Array.from({ length: 8 }, () => post('/shop/cart', 'item=7')))
  expect(new Set(others)).toEqual(new Set([200]))
})

test('guesses in a servlet application count if their client makes 412 of the status', async () => {
  const gateway = await start()
  const statuses: number[] = []
  for (let sent = 0; sent < 6; sent++) {
    const headers = {
      'content-type': 'application/x-www-form-urlencoded',
      'x-forwarded-for': `198.51.100.${sent}`,
      'if-none-match': '*',
    }
    const body = 'j_username=anna&j_password=wrong'
    statuses.push((await gateway.send('POST', '/shop/j_security_check', { headers, body })).status)
  }
  expect(statuses).toEqual([412, 412, 412, 412, 412, 429])
})

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startSluice } from '../../proxy/testing/embedded/start-sluice.ts'
import { spawnGateway } from '../support/gateway/gateway.ts'
import { runHosted } from '../support/gateway/hosted-command.ts'
import { directoryWith } from '../support/gateway/settings.ts'

// Lists of addresses in files, in commands that need no running gateway.

const settings = `
denyList: [{ file: bad.txt }, { file: vpn.txt }]
limits: [{ name: login, match: POST /login, requests: 1, window: 10m }]
`

function folderWith(vpn: string): string {
  const folder = directoryWith(settings)
  writeFileSync(join(folder, 'bad.txt'), '203.0.113.7\n')
  writeFileSync(join(folder, 'vpn.txt'), vpn)
  return folder
}

const rightList = '# one\n192.0.2.0/24\n2001:db8::/32\n'
const wrongList = `${'192.0.2.1\n'.repeat(3)}192.0.2.1/33\n# right\n\u001b[31mred\n`
const mistakes = [
  'vpn.txt:4: got "192.0.2.1/33", needs one IP address or CIDR, or a comment after #',
  'vpn.txt:6: got "\\u001b[31mred", needs one IP address or CIDR, or a comment after #',
]

test('validate reads the lists and prints each line that is a mistake', async () => {
  const right = await runHosted(['validate'], {}, folderWith(rightList))
  expect(right).toMatchObject({ status: 0, stderr: '' })
  const wrong = await runHosted(['validate'], {}, folderWith(wrongList))
  expect(wrong).toMatchObject({ status: 1, stdout: '', stderr: `${mistakes.join('\n')}\n` })
  const many = await runHosted(['validate'], {}, folderWith('x\n'.repeat(12)))
  expect(many.stderr).toContain('vpn.txt:10: got "x"')
  expect(many.stderr.endsWith('vpn.txt: there are more such lines\n')).toBe(true)
})

test('validate warns of a list that contains every address', async () => {
  const { status, stderr } = await runHosted(['validate'], {}, folderWith('10.0.0.1\n0.0.0.0/0\n'))
  expect(status).toBe(0)
  expect(stderr).toBe('warning: vpn.txt:2: every client is on the list\n')
})

test('validate warns of a network in a list that matches no client behind NAT64', async () => {
  const { status, stderr } = await runHosted(['validate'], {}, folderWith('10.0.0.1\n64:ff9b::/96\n'))
  expect(status).toBe(0)
  expect(stderr).toBe(
    'warning: vpn.txt:2: 64:ff9b::/96 does not match clients behind NAT64, which are matched by their IPv4 addresses: list these\n',
  )
})

test('explain says which list and which line', async () => {
  const folder = folderWith(rightList)
  const { status, stdout } = await runHosted(['explain', 'GET', '/', '--ip', '2001:db8::9'], {}, folder)
  expect(status).toBe(1)
  expect(stdout).toContain('denyList contains the client: vpn.txt, line 3')
  const other = await runHosted(['explain', 'GET', '/', '--ip', '198.51.100.1'], {}, folder)
  expect(other.status).toBe(0)
})

test('replay denies what the lists deny', async () => {
  const folder = folderWith(rightList)
  const line = (ip: string): string =>
    `${ip} - - [04/May/2026:09:00:00 +0000] "GET / HTTP/1.1" 200 512 "-" "curl/8.5"\n`
  const log = ['192.0.2.77', '203.0.113.7', '203.0.113.8', '2001:db8::1'].map(line).join('')
  writeFileSync(join(folder, 'access.log'), log)
  const { stdout } = await runHosted(['replay', 'access.log', '--json'], {}, folder)
  expect(JSON.parse(stdout)).toMatchObject({ requests: { total: 4, denied: 3 } })
})

test.each(['1', '2'])('a start with %s workers prints each mistake once, and exits', async (workers) => {
  const folder = folderWith(wrongList)
  const gateway = spawnGateway({ WORKERS: workers, CONFIG_FILE: join(folder, 'sluice.yaml') })
  expect(await gateway.exit).toBe(1)
  expect(gateway.output().trimEnd().split('\n')).toEqual(mistakes)
})

test('an embedded gateway reads the lists too, from where it runs', async () => {
  const folder = folderWith(rightList)
  const started = startSluice({
    upstream: 'http://127.0.0.1:9',
    settings: { denyList: [{ file: join(folder, 'vpn.txt') }] },
  })
  await using gateway = await started
  expect((await fetch(gateway.url)).status).toBe(502)
  writeFileSync(join(folder, 'vpn.txt'), 'x')
  const refused = startSluice({
    upstream: 'http://127.0.0.1:9',
    settings: { denyList: [{ ip: { file: join(folder, 'vpn.txt') } }] },
  })
  await expect(refused).rejects.toThrow('vpn.txt:1: got "x", needs one IP address')
})

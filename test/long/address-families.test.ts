import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { spawnCommand } from '../support/gateway/process.ts'
import { atEndOfFile } from '../support/run/at-end.ts'

/** Machines without IPv4 or without IPv6, each as a network namespace whose only interface is loopback. */
const hosts = [
  {
    of: 'IPv4 alone',
    without: 'IPv6',
    address: '127.0.0.1',
    setUp: ['sysctl', '-qw', 'net.ipv6.conf.all.disable_ipv6=1'],
  },
  {
    of: 'IPv6 alone',
    without: 'IPv4',
    address: '::1',
    setUp: ['ip', 'address', 'delete', '127.0.0.1/8', 'dev', 'lo'],
  },
]

const backend = `require('node:http').createServer((request, response) => response.end(request.headers['x-forwarded-for']))
  .listen(3000, '::1').on('error', () => process.exit(1)).on('listening', () => console.log('listening'))`
const client = `for (const [method, path] of [['GET', '/'], ...Array(31).fill(['POST', '/login'])]) {
  const response = await fetch('http://HOST:8080' + path, { method })
  console.log(response.status, (await response.text()).slice(0, 20))
}
console.log((await fetch('http://HOST:9090/readyz')).status)`

test.each(hosts)('a gateway serves on a host with $of', async ({ without, address, setUp }) => {
  const namespace = `sluice-${without}-${process.pid}`
  try {
    execFileSync('ip', ['netns', 'add', namespace], { stdio: 'pipe' })
  } catch (cause) {
    throw new Error('this test needs root and iproute2, to make a network namespace', { cause })
  }
  atEndOfFile(() => void execFileSync('ip', ['netns', 'delete', namespace]))
  const inside = (command: readonly string[], env: Record<string, string> = {}) =>
    spawnCommand('ip', env, ['netns', 'exec', namespace, ...command])
  await inside(['ip', 'link', 'set', 'lo', 'up']).exit
  expect(await inside(setUp).exit).toBe(0)

  const host = address.includes(':') ? `[${address}]` : address
  const node = process.execPath
  const served = inside([node, '-e', backend.replace('::1', address)])
  await served.waitForLine(/^listening$/)
  // HOST is unset, so the gateway listens on all interfaces, with IPv4 and IPv6.
  const gateway = inside([node, 'proxy/main.ts'], {
    PORT: '8080',
    UPSTREAM_URL: `http://${host}:3000`,
    ADMIN_HOST: address,
  })
  await gateway.waitForLine(/"msg":"listening"/)
  const asked = inside([node, '--input-type=module', '-e', client.replaceAll('HOST', host)])
  expect(await asked.exit, asked.stderr()).toBe(0)
  const refused = expect.stringMatching(/^429 /) as string
  expect(asked.stdout().trim().split('\n')).toEqual([
    ...Array<string>(31).fill(`200 ${address}`),
    refused,
    '200',
  ])
  expect(await gateway.stop()).toBe(0)
})

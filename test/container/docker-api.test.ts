import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { execFile, spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { requireEngine } from '../support/containers/engine.ts'
import { startGateway, type GatewayProcess } from '../support/gateway/gateway.ts'

// The Docker API behind the gateway, with the docker command as its client. It attaches and executes through `Upgrade: tcp`, in which each
// side closes its direction separately.

const execute = promisify(execFile)
const IMAGE = process.env['REDIS_IMAGE'] ?? 'redis:8'
const name = `sluice-test-${randomBytes(4).toString('hex')}`

let port = 0
let gateway: GatewayProcess
const stops: (() => unknown)[] = []

beforeAll(async () => {
  port = await startEngineOverTcp()
  gateway = await startGateway({
    UPSTREAM_URL: `http://127.0.0.1:${port}`,
    RATE_LIMITING_DISABLED: '1',
    UPGRADE_PROTOCOLS: 'tcp,h2c',
  })
  await execute('docker', ['run', '--detach', '--name', name, '--entrypoint', 'cat', '--interactive', IMAGE])
  stops.push(() => execute('docker', ['rm', '--force', name]))
})

afterAll(async () => {
  for (const stop of stops.reverse()) await stop()
})

/** The engine's socket as a TCP port that keeps half-closed connections open. */
async function startEngineOverTcp(): Promise<number> {
  const engine = await requireEngine()
  const { socketPath, host, port } = engine.container.dockerode.modem as {
    socketPath?: string
    host?: string
    port?: number
  }
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const place = socketPath === undefined ? { host: host ?? '', port: Number(port) } : { path: socketPath }
    const upstream = connect({ ...place, allowHalfOpen: true })
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from)
      from.on('error', () => to.destroy())
      from.on('close', () => sockets.delete(from))
      from.pipe(to)
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  stops.push(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return (server.address() as AddressInfo).port
}

/** Runs docker through the gateway, or directly, with this input. */
async function docker(
  at: number,
  args: readonly string[],
  input = '',
): Promise<{ status: unknown; output: string }> {
  const env = { ...process.env, DOCKER_HOST: `tcp://127.0.0.1:${at}` }
  const child = spawn('docker', args, { env, stdio: 'pipe' })
  child.stdin.on('error', () => undefined)
  child.stdin.end(input)
  const [output, problems, [status]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[unknown]>,
  ])
  return { status, output: output + problems }
}

const long = 'a line of input, and more of it\n'.repeat(100_000)

describe.each([
  ['exec without input', ['exec', name, 'echo', 'hello'], ''],
  [
    'exec that answers after its input has ended',
    ['exec', '-i', name, 'sh', '-c', 'cat | wc -c; echo end'],
    long,
  ],
  ['exec with as much output as input', ['exec', '-i', name, 'cat'], long],
  ['exec that fails', ['exec', name, 'sh', '-c', 'echo no >&2; exit 7'], ''],
  ['run', ['run', '--rm', '-i', '--entrypoint', 'sh', IMAGE, '-c', 'cat; echo end'], 'input\n'],
  ['what needs no upgrade', ['inspect', '--format', '{{.Name}}', name], ''],
] as const)('docker %s', (_, args, input) => {
  test('docker prints the same through the gateway', async () => {
    const direct = await docker(port, args, input)
    expect(await docker(gateway.port, args, input)).toEqual(direct)
  })
})

test('docker attach: the container reads the input, and goes on when its end comes', async () => {
  const started = `${name}-attached`
  await execute('docker', [
    'create',
    '--name',
    started,
    '-i',
    '--entrypoint',
    'sh',
    IMAGE,
    '-c',
    'cat; echo end',
  ])
  stops.push(() => execute('docker', ['rm', '--force', started]))
  expect(await docker(gateway.port, ['start', '--attach', '--interactive', started], 'input\n')).toEqual({
    status: 0,
    output: 'input\nend\n',
  })
})

test('without the setting, docker says that it could not be upgraded', async () => {
  const plain = await startGateway({ UPSTREAM_URL: `http://127.0.0.1:${port}`, RATE_LIMITING_DISABLED: '1' })
  expect(await docker(plain.port, ['exec', name, 'echo', 'hello'])).toMatchObject({
    status: 1,
    output: expect.stringContaining('unable to upgrade to tcp, received 200') as string,
  })
})

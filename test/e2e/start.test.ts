import { execFileSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { freePort } from '../support/network/ports.ts'
import { runNode, spawnNode, type NodeProcess } from '../support/gateway/process.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

const curlLine = /^ *(curl -H 'x-api-key: (sluice_[\w-]{43})' (https?:\/\/\S+))$/

/** A directory without `sluice.yaml`, with free ports and its own database. */
type Place = { readonly directory: string; readonly env: Record<string, string>; readonly port: number }

let place: Place

async function choosePlace(): Promise<Place> {
  const directory = makeTemporaryDirectory()
  const port = await freePort()
  const env = {
    PORT: String(port),
    ADMIN_PORT: String(await freePort()),
    ORIGIN_PORT: String(await freePort()),
    ORIGIN_DB: join(directory, 'data', 'origin.db'),
  }
  return { directory, env, port }
}

function start({ directory, env }: Place, more: Record<string, string> = {}): NodeProcess {
  return spawnNode('scripts/start.ts', { ...env, ...more }, [], { cwd: directory })
}

async function untilBothListen(started: NodeProcess): Promise<void> {
  await started.waitForLine(/"name":"gateway".*"msg":"listening"/)
  await started.waitForLine(/"name":"origin".*"msg":"listening"/)
}

/** Signals the whole group, as a terminal does, and then npm once more, which forwards the signal. Both must count as one signal. */
async function stopTwice(started: NodeProcess, signal: NodeJS.Signals): Promise<void> {
  process.kill(-(started.child.pid ?? 0), signal)
  expect(await started.stop(signal)).toBe(0)
  expect(started.stdout().match(/"msg":"stopped"/g)).toHaveLength(2)
}

function pidOf(started: NodeProcess, name: 'gateway' | 'origin'): number {
  const line =
    started
      .stdout()
      .split('\n')
      .find((each) => each.includes(`"name":"${name}"`)) ?? ''
  return (JSON.parse(line) as { pid: number }).pid
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Kills the gateway or the origin, and waits until the other one and the parent have ended. */
async function expectToEndWith(started: NodeProcess, name: 'gateway' | 'origin'): Promise<void> {
  await untilBothListen(started)
  const other = pidOf(started, name === 'gateway' ? 'origin' : 'gateway')
  process.kill(pidOf(started, name), 'SIGKILL')
  expect(await started.exit).toBe(137)
  expect(isAlive(other)).toBe(false)
}

beforeAll(async () => {
  place = await choosePlace()
})

describe('npm start', () => {
  let key: string

  test('every response of the first npm start comes from the demo service, and it prints a curl line that works', async () => {
    const started = start(place)
    const first = await eventually('the gateway answers', () =>
      fetch(`http://127.0.0.1:${place.port}/api/v1/me`),
    )
    expect(first.status).toBe(401)
    const [, command = '', printed = '', url] = await started.waitForLine(curlLine)
    key = printed
    expect(url).toBe(`http://127.0.0.1:${place.port}/api/v1/me`)
    const answer = execFileSync('sh', ['-c', `${command} -s -D -`], { encoding: 'utf8' })
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    expect(answer.split('\r\n\r\n')[1]).toMatch(/^\{"id":".+","project":\{.+"websiteSetupCompleted":false\}$/)
    expect(started.output().split(key)).toHaveLength(2)
    const lines = started
      .stdout()
      .split('\n')
      .filter((text) => text.startsWith('{'))
    expect(lines.map((text) => (JSON.parse(text) as { level: string }).level)).toEqual(
      lines.map(() => 'info'),
    )

    const login = () => fetch(`http://127.0.0.1:${place.port}/login`, { method: 'POST' })
    const statuses = await Promise.all(Array.from({ length: 31 }, async () => (await login()).status))
    expect(
      statuses.filter((status) => status === 404),
      'reach the origin',
    ).toHaveLength(30)
    expect(statuses.filter((status) => status === 429)).toHaveLength(1)

    const pids = [pidOf(started, 'gateway'), pidOf(started, 'origin')]
    expect(await started.stop('SIGTERM')).toBe(0)
    expect(pids.map(isAlive)).toEqual([false, false])
  })

  test('a second time prints no key and keeps the first valid; SIGINT to all of it stops it, once for npm', async () => {
    const started = start(place)
    await untilBothListen(started)
    const answer = await fetch(`http://127.0.0.1:${place.port}/api/v1/me`, { headers: { 'x-api-key': key } })
    expect(answer.status).toBe(200)
    process.kill(-(started.child.pid ?? 0), 'SIGINT')
    for (const name of ['gateway', 'origin'])
      await started.waitForLine(new RegExp(`"name":"${name}".*"msg":"stopped"`))
    // For a quarter of a second, a signal counts as the same one, forwarded late by npm.
    const lateUntilMs = performance.now() + 100
    while (performance.now() < lateUntilMs) {
      try {
        process.kill(-(started.child.pid ?? 0), 'SIGINT')
      } catch (error) {
        // On a busy machine, all processes may have ended by now.
        expect(error).toMatchObject({ code: 'ESRCH' })
      }
      await sleep(10)
    }
    expect(await started.exit).toBe(0)
    expect(started.stdout().match(/"msg":"stopped"/g)).toHaveLength(2)
    expect(started.output()).not.toMatch(/sluice_|curl/)
  })

  test('stopped before all is up ends both, with status 0', async () => {
    const started = start(place)
    await started.waitForLine(/"name":"gateway"/)
    expect(await started.stop()).toBe(0)
    await expect(fetch(`http://127.0.0.1:${place.port}/`)).rejects.toThrow()
  })

  test('the printed line follows the settings of the user; all ends when the origin dies, with its status', async () => {
    const started = start(await choosePlace(), { ORIGIN_PUBLIC_URL: 'https://api.example' })
    const [, , , url] = await started.waitForLine(curlLine)
    expect(url).toBe('https://api.example/api/v1/me')
    await expectToEndWith(started, 'origin')
  })

  test.each([
    ['PORT', /^cannot listen: port (\d+) is in use by another process, set PORT to another$/],
    ['ADMIN_PORT', /^cannot listen: port (\d+) .*, set ADMIN_PORT to another$/],
    ['ORIGIN_PORT', /^cannot listen: port (\d+) .*, set ORIGIN_PORT to another, or .*: npm run gateway$/],
  ])('npm start starts nothing and tells no key where %s is taken', async (variable, message) => {
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    const taken = String((other.address() as { port: number }).port)
    const { directory, env } = await choosePlace()
    const finished = await runNode('scripts/start.ts', { ...env, [variable]: taken }, [], { cwd: directory })
    other.close()
    expect(finished).toMatchObject({ status: 1, stdout: '' })
    expect(message.exec(finished.stderr.trimEnd())?.[1]).toBe(taken)
  })

  test('port 0 is any free one, which all agree on; all ends when the gateway dies, with its status', async () => {
    const ports = { PORT: '0', ADMIN_PORT: '0', ORIGIN_PORT: '0' }
    const started = start(await choosePlace(), ports)
    const [, command = ''] = await started.waitForLine(curlLine)
    expect(execFileSync('sh', ['-c', `${command} -s -D -`], { encoding: 'utf8' })).toMatch(/^HTTP\/1\.1 200 /)
    await expectToEndWith(started, 'gateway')
  })

  test.each(['UPSTREAM_URL', 'sluice.yaml'])(
    'npm start starts no origin where %s names a backend',
    async (source) => {
      const { directory, env, port } = await choosePlace()
      const backend = await startBackend()
      if (source === 'sluice.yaml') writeFileSync(join(directory, source), `upstream: ${backend.url}\n`)
      const more = source === 'sluice.yaml' ? {} : { UPSTREAM_URL: backend.url }
      const started = start({ directory, env, port }, more)
      await started.waitForLine(/"name":"gateway".*"msg":"listening"/)
      expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(200)
      expect(started.output()).toContain(`Only the gateway is started, in front of ${backend.url}/`)
      expect(await started.stop()).toBe(0)
      expect(started.output()).not.toMatch(/"name":"origin"|sluice_/)
      expect(existsSync(join(directory, 'data'))).toBe(false)
    },
  )

  test('npm start starts no origin where routes name backends, and other hosts get 404', async () => {
    const { directory, env, port } = await choosePlace()
    const backend = await startBackend()
    const routes = `routes: [{ name: shop, hosts: [localhost], upstream: ${backend.url} }]\n`
    writeFileSync(join(directory, 'sluice.yaml'), routes)
    const started = start({ directory, env, port })
    await started.waitForLine(/"name":"gateway".*"msg":"listening"/)
    expect((await fetch(`http://localhost:${port}/`)).status).toBe(200)
    expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(404)
    expect(started.output()).toContain(`Only the gateway is started, in front of ${backend.url}\n`)
    expect(await started.stop()).toBe(0)
    expect(existsSync(join(directory, 'data'))).toBe(false)
  })

  test('npm start starts both where a route leads to the origin, and other hosts get 404', async () => {
    const { directory, env, port } = await choosePlace()
    const routes = `routes: [{ name: demo, hosts: [localhost], upstream: "http://127.0.0.1:${env['ORIGIN_PORT']}" }]\n`
    writeFileSync(join(directory, 'sluice.yaml'), routes)
    const started = start({ directory, env, port })
    await untilBothListen(started)
    expect((await fetch(`http://localhost:${port}/health`)).status).toBe(200)
    expect((await fetch(`http://127.0.0.1:${port}/health`)).status).toBe(404)
    await stopTwice(started, 'SIGTERM')
  })

  test('npm start starts both where the named backend is the origin itself; SIGTERM to all processes stops them', async () => {
    const { directory, env, port } = await choosePlace()
    const started = start(
      { directory, env, port },
      { UPSTREAM_URL: `http://127.0.0.1:${env['ORIGIN_PORT'] ?? ''}` },
    )
    await untilBothListen(started)
    await stopTwice(started, 'SIGTERM')
  })

  test('the gateway may have the usual port of the demo service, if that has another', async () => {
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    // A port in use, so that nothing starts: ports are checked only if the settings are valid.
    const taken = String((other.address() as { port: number }).port)
    const { directory, env } = await choosePlace()
    const run = async (more: Record<string, string>): Promise<string> =>
      (
        await runNode('scripts/start.ts', { ...env, PORT: '3000', ADMIN_PORT: taken, ...more }, [], {
          cwd: directory,
        })
      ).stderr
    for (const ORIGIN_PORT of [env['ORIGIN_PORT'] ?? '', '0'])
      expect(await run({ ORIGIN_PORT })).toMatch(/^cannot listen: port \d+ is in use by another process/)
    expect(await run({ ORIGIN_PORT: '3000' })).toBe(
      'ORIGIN_PORT: got 3000, needs a different port than the one for clients (PORT)\n',
    )
    expect(await run({ UPSTREAM_URL: 'http://localhost:3000' })).toMatch(
      /^UPSTREAM_URL: .* not the gateway's own\n$/,
    )
    other.close()
  })

  test('npm start reports every wrong setting of both, once, and starts nothing', async () => {
    const wrong = { PORT: 'eighty', ORIGIN_PORT: '70000', LOG_LEVEL: 'loud' }
    const { status, stdout, stderr } = await runNode('scripts/start.ts', { ...place.env, ...wrong }, [], {
      cwd: place.directory,
    })
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr.trimEnd().split('\n')).toEqual([
      expect.stringMatching(/^PORT: got "eighty", needs /),
      expect.stringMatching(/^LOG_LEVEL: got "loud", needs /),
      expect.stringMatching(/^ORIGIN_PORT: got 70000, needs /),
    ])
  })
})

test('no process loads the WebSocket client of Node, which takes longer than all of its HTTP', async () => {
  const list =
    "process.once('exit',()=>console.log(process.moduleLoadList.filter(name=>/undici|http_/.test(name)).join()))"
  const NODE_OPTIONS = `--import "data:text/javascript,${list}"`
  for (const script of ['proxy/main.ts', 'proxy/healthcheck.ts', 'origin/main.ts', 'scripts/start.ts']) {
    const { stdout } = await runNode(script, { NODE_OPTIONS, ADMIN_PORT: 'none', ORIGIN_PORT: 'none' })
    expect(stdout, script).toContain('http_server')
    expect(stdout, script).not.toContain('undici')
  }
})

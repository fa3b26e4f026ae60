import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { gatewayOptions } from '../../shared/v8-gc.ts'
import { startBackend } from '../support/http/backend.ts'
import { send } from '../support/gateway/gateway.ts'
import { runHosted } from '../support/gateway/hosted-command.ts'
import { runNode, spawnNode, type Finished } from '../support/gateway/process.ts'
import { directoryWith } from '../support/gateway/settings.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'

type Env = Record<string, string>

function sluice(args: readonly string[], env: Env = {}, cwd = makeTemporaryDirectory()): Promise<Finished> {
  return args[0] === 'run' ? runNode('proxy/cli/main.ts', env, args, { cwd }) : runHosted(args, env, cwd)
}

const table = `limits:
  - { name: login, match: POST /login, requests: 2, window: 1m }
`
const mistaken = `limits:
  - { name: login, match: POST /login, requests: 0, window: 1m }
  - name: login
    match: GET /a
    requests: 1
    window: 1y
`

describe('usage', () => {
  const removed = ['override', '192.0.2.7', '--rule', 'login', '--remove']

  test.each([
    [['validate', 'a.yaml', '--config', 'b.yaml']],
    [[...removed, '--requests', '5']],
    [[...removed, '--for', '1d']],
    [[...removed, '--label', 'Acme']],
    [['plan', '192.0.2.7', 'pro', '--remove']],
    [['explain', 'GET', '/', '--admin', 'http://127.0.0.1:9090', '--config', 'a.yaml']],
    [['replay', 'access.log', '--html', '--json']],
  ])('arguments that contradict each other are refused: %j', async (args) => {
    const { status, stdout, stderr } = await sluice(args)
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expect(stderr).toMatch(/^error: .*(?:not both|cannot be used with|do not combine)/)
  })

  test.each([[[]], [['frobnicate']], [['validate', '--frobnicate']], [['validate', 'a', 'b']]])(
    '%j ends with status 2',
    async (args) => {
      const { status, stdout, stderr } = await sluice(args)
      expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
      expect(stderr).not.toBe('')
    },
  )

  test.each([
    [['validate', '']],
    [['validate', '--config', '']],
    [['run', '--upstream', '']],
    [['explain', 'GET', '/', '--config', '']],
  ])('%j, with what the shell makes of an unset variable, is wrong usage', async (args) => {
    const { status, stderr } = await sluice(args)
    expect({ status, stderr }).toEqual({
      status: 2,
      stderr: expect.stringContaining('It is empty.') as string,
    })
  })

  test('each verb has help with an example', async () => {
    const { status, stdout } = await sluice(['--help'])
    expect(status).toBe(0)
    const [, list = ''] = stdout.split('Commands:')
    const verbs = [...list.matchAll(/^ {2}([a-z]+) /gm)].flatMap(([, verb]) => verb ?? [])
    expect(verbs).toContain('validate')
    const helps = await Promise.all(
      verbs.map(async (verb) => ({ verb, ...(await sluice([verb, '--help'])) })),
    )
    for (const { verb, status: ended, stdout: help } of helps.filter((each) => each.verb !== 'help')) {
      expect(ended, verb).toBe(0)
      expect(help, verb).toMatch(new RegExp(`Example.*:\n  sluice ${verb}`))
      expect(help, verb).toContain('--json')
    }
  })

  test('a process ends with status 2 for wrong usage', async () => {
    const { status, stdout, stderr } = await runNode('proxy/cli/main.ts', {}, ['frobnicate'])
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expect(stderr).toContain('frobnicate')
  })

  test('version is that of package.json', async () => {
    expect(await runNode('proxy/cli/main.ts', {}, ['version'])).toEqual({
      status: 0,
      stdout: '0.1.0\n',
      stderr: '',
    })
    const { stdout } = await sluice(['version', '--json'])
    expect(JSON.parse(stdout)).toEqual({ version: '0.1.0', node: process.versions.node })
  })
})

describe('validate', () => {
  test('sluice validate says that a file is valid', async () => {
    const cwd = directoryWith(table)
    expect(await sluice(['validate'], {}, cwd)).toEqual({
      status: 0,
      stdout: `${cwd}/sluice.yaml: valid, 1 rule\n`,
      stderr: '',
    })
    const { status, stdout } = await sluice(['validate', '--json', 'sluice.yaml'], {}, cwd)
    expect(status).toBe(0)
    expect(JSON.parse(stdout)).toEqual({
      valid: true,
      file: join(cwd, 'sluice.yaml'),
      rules: 1,
      mistakes: [],
      warnings: [],
    })
  })

  test('sluice validate prints each mistake with its line, the value and the expected form', async () => {
    const cwd = directoryWith(mistaken)
    const { status, stdout, stderr } = await sluice(['validate', 'sluice.yaml'], {}, cwd)
    expect(await sluice(['validate', '--config', 'sluice.yaml'], {}, cwd)).toEqual({ status, stdout, stderr })
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr.split('\n')).toEqual([
      'sluice.yaml:2: rule "login", requests: got 0, needs a whole number from 1 to 1000000000',
      expect.stringMatching(/^sluice\.yaml:3: rule "login", name: duplicate name/),
      expect.stringMatching(/^sluice\.yaml:6: rule "login", window: got "1y", needs /),
      '',
    ])
    const asJson = await sluice(['validate', 'sluice.yaml', '--json'], { PORT: 'http' }, cwd)
    expect(asJson.status).toBe(1)
    const { valid, mistakes } = JSON.parse(asJson.stdout) as { valid: boolean; mistakes: object[] }
    expect(valid).toBe(false)
    expect(mistakes).toHaveLength(4)
    expect(mistakes[0]).toEqual({ text: expect.stringMatching(/^PORT: got "http"/) as string })
    expect(mistakes[1]).toMatchObject({ file: 'sluice.yaml', line: 2 })
  })

  test.each([
    ['CONFIG_FILE', 'limits.yaml', 'limits.yaml'],
    ['SLUICE_CONFIG_FILE', 'limits.yaml', 'limits.yaml'],
    ['CONFIG_FILE', '', 'sluice.yaml'],
  ])('as JSON, mistakes have their place with %s=%s', async (variable, given, file) => {
    const cwd = directoryWith(mistaken)
    writeFileSync(join(cwd, 'limits.yaml'), mistaken)
    const { stdout } = await sluice(['validate', '--json'], { [variable]: given }, cwd)
    const { file: whole, mistakes } = JSON.parse(stdout) as { file: string; mistakes: object[] }
    expect(whole).toBe(join(cwd, file))
    expect(mistakes[0]).toMatchObject({ file, line: 2 })
  })

  test('as JSON, a mistake in a variable has no file, if there is none', async () => {
    const { stdout } = await sluice(['validate', '--json'], { PORT: 'http' })
    expect(JSON.parse(stdout)).toMatchObject({ valid: false, file: null })
  })

  test('reports the same mistakes as a start of the gateway, word for word', async () => {
    const cwd = directoryWith(mistaken)
    const started = await runNode('proxy/main.ts', {}, [], { cwd })
    const checked = await sluice(['validate'], {}, cwd)
    expect(started.status).toBe(1)
    expect(checked.stderr).toBe(started.stderr)
  })

  test('sluice validate shows warnings, which are not mistakes', async () => {
    const cwd = directoryWith(`trustedProxies: [0.0.0.0/0]\n${table}`)
    const { status, stderr } = await sluice(['validate'], {}, cwd)
    expect(status).toBe(0)
    expect(stderr).toMatch(/^warning: sluice\.yaml:1: trustedProxies: 0\.0\.0\.0\/0 trusts everybody/)
  })

  test('validate of a missing file has a negative status', async () => {
    const { status, stderr } = await sluice(['validate', 'none.yaml'])
    expect(status).toBe(1)
    expect(stderr).toContain('"none.yaml"')
  })
})

describe('run', () => {
  test.each(['1', '2'])(
    'sluice run starts a gateway with %s workers, which stops on SIGTERM',
    async (workers) => {
      const backend = await startBackend()
      const cwd = makeTemporaryDirectory()
      writeFileSync(join(cwd, 'other.yaml'), table)
      const upstream = `http://127.0.0.1:${backend.port}`
      const args = ['run', '--config', 'other.yaml', '--upstream', upstream, '--port', '0']
      // The options override the variables.
      const env = { HOST: '127.0.0.1', ADMIN_PORT: '0', WORKERS: workers, UPSTREAM_URL: 'http://127.0.0.1:1' }
      const gateway = spawnNode('proxy/cli/main.ts', env, args, { cwd })
      const [line] = await gateway.waitForLine(/^.*"msg":"listening".*$/)
      const { port, limits } = JSON.parse(line) as { port: number; limits: string }
      expect(limits).toBe(join(cwd, 'other.yaml'))
      const statuses: number[] = []
      for (let i = 0; i < 3; i++) statuses.push((await send(port, 'POST', '/login')).status)
      expect(statuses).toEqual([200, 200, 429])
      // The process has replaced itself, so its id is still the one that a supervisor knows.
      const command = execFileSync('ps', ['-o', 'args=', '-p', String(gateway.child.pid)], {
        encoding: 'utf8',
      })
      for (const option of gatewayOptions) expect(command).toContain(option)
      expect(await gateway.stop()).toBe(0)
    },
  )

  test('sluice run reports a wrong setting as the gateway does', async () => {
    const { status, stderr } = await sluice(['run', '--port', 'http'])
    expect(status).toBe(1)
    expect(stderr).toMatch(/^PORT: got "http"/)
  })
})

describe('explain', () => {
  test('sluice explain prints the rules that count a request, for people and as JSON', async () => {
    const cwd = directoryWith(table)
    const asked = ['explain', 'POST', '/LOGIN/', '--ip', '192.0.2.7', '--host', 'a.b', '--header', 'x-a: 1']
    const { status, stdout, stderr } = await sluice(asked, {}, cwd)
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toMatch(/^outcome +counts under 1 rule$/m)
    expect(stdout).toMatch(/^rule login: 2 in 60 s, fixed\n +ip 192\.0\.2\.7\n +counter 192\.0\.2\.7$/m)
    const asJson = await sluice([...asked, '--json'], {}, cwd)
    expect(JSON.parse(asJson.stdout)).toMatchObject({
      outcome: 'limited',
      host: 'a.b',
      rules: [{ name: 'login' }],
    })
  })

  test.each([
    [['GET', '/a%00'], 1],
    [['GET', '/', '--ip', 'here'], 2],
    [['GET', '/', '--header', 'x'], 2],
    [['GET', '/', '--header', 'a: b\r\nc: d'], 2],
    [['GET'], 2],
  ])('%j ends with status %i', async (args, expected) => {
    expect((await sluice(['explain', ...args])).status).toBe(expected)
  })
})

import { createHash } from 'node:crypto'
import {
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { send } from '../support/gateway/gateway.ts'
import { freePort } from '../support/network/ports.ts'
import { spawnCommand, type Finished, type NodeProcess } from '../support/gateway/process.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { run } from './run.ts'
import { startRegistryWith } from './verdaccio.ts'
import { eventually } from '../support/wait/eventually.ts'

// The package that `npm pack` makes from this repository, published to a registry and installed from it in an empty folder, as users do.

const repositoryRoot = join(import.meta.dirname, '../..')
const limits = `limits:
  - { name: api, match: GET /api, requests: 2, window: 15m }
`

let tarball: string
/** The URL of a registry with the tarball. */
let registry: string

beforeAll(async () => {
  const folder = makeTemporaryDirectory()
  await run(['npm', 'pack', '--pack-destination', folder], { cwd: repositoryRoot })
  const [name = ''] = readdirSync(folder)
  tarball = join(folder, name)
  registry = await startRegistryWith(tarball, environment())
})

describe.each(['24', '26'])('under Node %s', (major) => {
  let project: string
  let path: string

  beforeAll(async () => {
    project = join(makeTemporaryDirectory(), 'project')
    mkdirSync(project)
    writeFileSync(join(project, 'package.json'), '{ "private": true, "allowScripts": { "node": true } }')
    const args = ['npm', 'install', '--no-audit', '--no-fund', 'sluice', `node@${major}`] as const
    await run(args, { cwd: project, env: installing(), timeoutMs: 280_000 })
    path = [join(project, 'node_modules/.bin'), process.env['PATH']].join(':')
  }, 300_000)

  /** Starts the program that `npx sluice` finds, without a process in between. */
  function start(args: readonly string[], env: Record<string, string> = {}): NodeProcess {
    return spawnCommand(join(project, 'node_modules/.bin/sluice'), { PATH: path, ...env }, args, {
      cwd: project,
    })
  }

  async function sluice(...args: string[]): Promise<Finished> {
    const started = start(args)
    const status = await started.exit
    return { status, stdout: started.stdout(), stderr: started.stderr() }
  }

  test('the installed command says its version and that of this Node', async () => {
    const stdout = await run(['npx', 'sluice', 'version', '--json'], { cwd: project, env: { PATH: path } })
    const { version } = JSON.parse(readFileSync(join(repositoryRoot, 'package.json'), 'utf8')) as object & {
      version: string
    }
    expect(JSON.parse(stdout)).toEqual({ version, node: expect.stringMatching(`^${major}\\.`) as string })
  })

  test.each(['1', '2'])('the installed gateway runs before a backend, with WORKERS=%s', async (workers) => {
    const backend = await startBackend()
    writeFileSync(join(project, 'sluice.yaml'), limits)
    const [port, adminPort] = [await freePort(), await freePort()]
    const gateway = start(['run', '--upstream', backend.url, '--port', String(port)], {
      HOST: '127.0.0.1',
      ADMIN_PORT: String(adminPort),
      WORKERS: workers,
    })
    await eventually('the gateway answers', () => send(port, 'GET', '/'), { endMs: 60_000 })
    const statuses: number[] = []
    for (let asked = 0; asked < 3; asked++) statuses.push((await send(port, 'GET', '/api')).status)
    expect(statuses).toEqual([200, 200, 429])
    for (const path of ['/', '/page/page.css', '/page/main.js', '/page/rates.js'])
      expect((await send(adminPort, 'GET', path)).status).toBe(200)
    expect(await gateway.stop()).toBe(0)
  })

  test('validates and replays', async () => {
    writeFileSync(join(project, 'sluice.yaml'), limits)
    expect(await sluice('validate')).toMatchObject({ status: 0, stderr: '' })
    writeFileSync(join(project, 'wrong.yaml'), limits.replace('2', '0'))
    const wrong = await sluice('validate', 'wrong.yaml')
    expect(wrong.status).toBe(1)
    expect(wrong.stdout + wrong.stderr).toContain('wrong.yaml:2: rule "api", requests: got 0')
    const line = '192.0.2.7 - - [01/Mar/2026:00:00:00 +0000] "GET /api HTTP/1.1" 200 612 "-" "curl/8.9"\n'
    writeFileSync(join(project, 'access.log'), line.repeat(5))
    const replayed = await sluice('replay', 'access.log')
    expect(replayed.stdout).toContain('5 counted by a rule, 3 refused')
  })
})

describe('the entry points for tests', () => {
  const page = readFileSync(join(repositoryRoot, 'docs/testing.md'), 'utf8')
  const [vitest = '', nodeTest = '', container = ''] = [...page.matchAll(/```[tj]s\n([^]*?)```/g)].map(
    ([, code = '']) => code,
  )
  let project: string
  let withBackend: (example: string) => string

  beforeAll(async () => {
    project = join(makeTemporaryDirectory(), 'tested')
    mkdirSync(project)
    writeFileSync(join(project, 'package.json'), '{ "private": true, "type": "module" }')
    await run(['npm', 'install', '--no-audit', '--no-fund', '--ignore-scripts', 'sluice'], {
      cwd: project,
      env: installing(),
      timeoutMs: 280_000,
    })
    // As if these packages were installed too.
    for (const name of ['vitest', 'testcontainers', '@types'])
      symlinkSync(join(repositoryRoot, 'node_modules', name), join(project, 'node_modules', name))
    const backend = await startBackend()
    withBackend = (example) => example.replace('http://127.0.0.1:5000', backend.url)
  }, 300_000)

  test('the installed package is the published one', () => {
    const lock = JSON.parse(readFileSync(join(project, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { integrity?: string }>
    }
    const published = createHash('sha512').update(readFileSync(tarball)).digest('base64')
    expect(lock.packages['node_modules/sluice']?.integrity).toBe(`sha512-${published}`)
    const { dependencies } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as {
      dependencies: Record<string, string>
    }
    expect(dependencies['sluice']).toMatch(/^\^\d/)
  })

  test('the example with vitest passes', async () => {
    writeFileSync(join(project, 'login.test.ts'), withBackend(vitest))
    const program = join(repositoryRoot, 'node_modules/vitest/vitest.mjs')
    await run([process.execPath, program, 'run', '--root', project], { cwd: project, env: environment() })
  })

  test('the example with node:test passes', async () => {
    mkdirSync(join(project, 'test'))
    writeFileSync(join(project, 'test/export.test.mjs'), withBackend(nodeTest))
    await run([process.execPath, '--test', 'test/export.test.mjs'], { cwd: project })
  })

  test.for([
    ['embedded', vitest],
    ['testcontainers', container],
  ] as const)('the types of sluice/%s are complete, and reject wrong arguments', async ([name, example]) => {
    const folder = join(project, name)
    mkdirSync(folder)
    const wrong = `\nimport { startSluice as start } from 'sluice/embedded'\n// @ts-expect-error\nvoid start({ upstream: 1 })\n`
    writeFileSync(join(folder, 'example.ts'), `${example}\nexport {}${wrong}`)
    const compilerOptions = {
      module: 'nodenext',
      target: 'esnext',
      strict: true,
      noEmit: true,
      skipLibCheck: false,
    }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }))
    const compiler = join(repositoryRoot, 'node_modules/typescript-7/bin/tsc')
    await run([process.execPath, compiler, '-p', folder], { cwd: folder })
  })

  test.for(['typescript/bin/tsc6', 'typescript-7/bin/tsc'])(
    'the types of sluice/embedded are complete without those of Node, in a project whose lib has no AsyncDisposable: %s',
    async (compiler) => {
      const folder = join(project, compiler.replaceAll('/', '-'))
      mkdirSync(folder)
      const code = `import { startSluice } from 'sluice/embedded'
        const gateway = await startSluice({ upstream: 'http://127.0.0.1:5000' })
        // @ts-expect-error
        gateway.nothing()
        await gateway.close()`
      writeFileSync(join(folder, 'example.ts'), code)
      const compilerOptions = { module: 'nodenext', target: 'es2022', strict: true, types: [], noEmit: true }
      for (const skipLibCheck of [true, false]) {
        writeFileSync(
          join(folder, 'tsconfig.json'),
          JSON.stringify({ compilerOptions: { ...compilerOptions, skipLibCheck } }),
        )
        const program = join(repositoryRoot, 'node_modules', compiler)
        await run([process.execPath, program, '-p', folder], { cwd: folder })
      }
    },
  )
})

/** The variables of `environment`, for the registry that has the package. */
function installing(): Record<string, string> {
  return { ...environment(), npm_config_registry: registry }
}

/**
 * All variables of this process, some of which tell npm where to install from. Other processes that tests start get none of the developer's
 * variables.
 */
function environment(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
}

test('the package has its entries, and is under 2 MB without its dependencies', async () => {
  const folder = makeTemporaryDirectory()
  await run(['tar', '-xzf', tarball, '-C', folder], { cwd: folder })
  const { bin, exports } = JSON.parse(readFileSync(join(folder, 'package/package.json'), 'utf8')) as {
    bin: Record<string, string>
    exports: Record<string, string | Record<string, string>>
  }
  const entries = [bin, ...Object.values(exports)].flatMap((paths) =>
    typeof paths === 'string' ? [paths] : Object.values(paths),
  )
  for (const entry of entries) expect(existsSync(join(folder, 'package', entry)), entry).toBe(true)
  const types = globSync('**/*.d.ts', { cwd: join(folder, 'package') }).map((file) => basename(file, '.d.ts'))
  expect(types.toSorted()).toEqual(['clock', 'sluice', 'sluice-container', 'sluice-yaml', 'start-sluice'])
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((one) => one.isFile())
  const bytes = files.reduce((sum, one) => sum + statSync(join(one.parentPath, one.name)).size, 0)
  expect(bytes).toBeLessThan(2_000_000)
})

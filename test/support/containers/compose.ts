import { execFile, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { parse } from 'yaml'
import { atEnd } from '../run/at-end.ts'
import { requireEngine, type ContainerDetails, type Engine } from './engine.ts'

const execute = promisify(execFile)
const repositoryRoot = new URL('../../../', import.meta.url).pathname

/** This repository's compose file, under a project name of its own. */
export type ComposeProject = {
  readonly name: string
  /** Runs a subcommand, such as `up --detach`; resolves to its standard output, rejects with its output. */
  run(...args: readonly string[]): Promise<string>
  /** Runs a script in bash, in which `docker compose` is this project; rejects with its output if it fails. */
  shell(script: string): Promise<string>
  /** The service's containers, including stopped ones. */
  containers(service: string): Promise<readonly ContainerDetails[]>
  /** Stops the project and removes its containers, networks and volumes. Keeps the images as a cache for the next build. */
  remove(): Promise<void>
}

/** Returns the command for compose on this machine: the current plugin, or the older standalone program. */
export async function requireCompose(): Promise<readonly [string, ...string[]]> {
  const commands = [['docker', 'compose'] as const, ['docker-compose'] as const]
  for (const [program, ...plugin] of commands) {
    const works = await execute(program, [...plugin, 'version']).then(
      () => true,
      () => false,
    )
    if (works) return [program, ...plugin]
  }
  throw new Error('The container tests need `docker compose` or `docker-compose`.')
}

/**
 * The gateways of the project wait for Redis longer than by default. On a busy machine a reply may take more than 100 ms; the gateway
 * would then decide by itself, and its counts would not be exact.
 *
 * @param env variables that the compose file reads; `COMPOSE_FILE` replaces the repository's file
 */
export async function createComposeProject(env: Record<string, string>): Promise<ComposeProject> {
  const engine = await requireEngine()
  const [program, ...plugin] = await requireCompose()
  const name = `sluice-test-${randomBytes(4).toString('hex')}`
  const file = env['COMPOSE_FILE'] ?? 'docker-compose.yml'
  const folder = mkdtempSync(join(tmpdir(), 'sluice-compose-'))
  const overrides = join(folder, 'overrides.json')
  const inRedis = gatewaysInRedis(readFileSync(join(repositoryRoot, file), 'utf8'))
  const patience = inRedis.map((name) => [name, { environment: { STORE_TIMEOUT: '5s' } }] as const)
  writeFileSync(overrides, JSON.stringify({ services: Object.fromEntries(patience) }))
  const options = {
    cwd: repositoryRoot,
    env: {
      ...process.env,
      ...env,
      COMPOSE_FILE: inRedis.length > 0 ? [file, overrides].join(delimiter) : file,
    },
    maxBuffer: 16 * 1024 * 1024,
  }
  const command = (...args: readonly string[]): string[] => [...plugin, '--project-name', name, ...args]
  const down = command('down', '--volumes', '--remove-orphans', '--timeout', '5')

  let exists = true
  atEnd(() => {
    if (exists) spawnSync(program, down, { ...options, stdio: 'ignore' })
    rmSync(folder, { recursive: true, force: true })
  })

  return {
    name,
    run: async (...args) => (await execute(program, command(...args), options)).stdout,
    shell: async (script) => {
      const compose = [program, ...command()].map((word) => `'${word}'`).join(' ')
      const docker = `docker() { if [ "$1" = compose ]; then shift; ${compose} "$@"; else command docker "$@"; fi; }`
      return (await execute('bash', ['-euc', `${docker}\n${script}`], options)).stdout
    },
    containers: (service) => containersOf(engine, name, service),
    remove: async () => {
      await execute(program, down, options)
      exists = false
    },
  }
}

/** The services of a compose file that count in Redis. */
function gatewaysInRedis(composeFile: string): string[] {
  const { services } = parse(composeFile, { merge: true }) as { services: Record<string, Service> }
  return Object.keys(services).filter((name) => services[name]?.environment?.['REDIS_URL'] !== undefined)
}

type Service = { readonly environment?: Readonly<Record<string, string>> }

async function containersOf(engine: Engine, project: string, service: string): Promise<ContainerDetails[]> {
  const label = [`com.docker.compose.project=${project}`, `com.docker.compose.service=${service}`]
  const found = await engine.container.dockerode.listContainers({ all: true, filters: { label } })
  return Promise.all(found.map(({ Id }) => engine.container.getById(Id).inspect()))
}

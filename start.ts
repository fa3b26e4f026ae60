import { spawn, type ChildProcess } from 'node:child_process'
import { connect } from 'node:net'
import { constants } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { loadOriginSettings, type OriginSettings } from './origin/settings.ts'
import { loadGatewaySettings, type GatewaySettings } from './proxy/config/settings.ts'
import { gatewayTable } from './proxy/config/settings-table.ts'
import { baseUrlOf, reachedHost } from './shared/base-url.ts'
import { SettingsError } from './shared/settings.ts'
import { exitOnStartError, StartError } from './shared/start-error.ts'

/** The environment of the two processes: what was given, and what makes each know the other. */
type Environments = { readonly gateway: NodeJS.ProcessEnv; readonly origin: NodeJS.ProcessEnv }

const running = new Set<ChildProcess>()
let stopping = false
let status = 0

for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => stop(signal))

try {
  const { gateway, origin } = loadSettings()
  await refuseTakenPort(gateway)
  const environments = connectSettings(gateway, origin)
  const gatewayProcess = start('proxy/main.ts', environments.gateway)
  // The origin tells the first key once. By then what it tells must work, and nothing may be about to fail.
  if (await comesUp(gateway, gatewayProcess)) start('origin/main.ts', environments.origin)
} catch (error) {
  exitOnStartError(error)
}

/** @throws SettingsError with every problem of both, each once */
function loadSettings(): { gateway: GatewaySettings; origin: OriginSettings } {
  const problems: string[] = []
  const load = <Settings>(read: () => { settings: Settings }): Settings | undefined => {
    try {
      return read().settings
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error
      problems.push(...error.problems)
      return undefined
    }
  }
  const gateway = load(() => loadGatewaySettings(process.env, process.cwd()))
  const origin = load(() => loadOriginSettings(process.env))
  if (gateway && origin) return { gateway, origin }
  throw new SettingsError([...new Set(problems)])
}

/** The origin's clients come through the gateway, and the gateway finds the origin, unless the user has said otherwise. */
function connectSettings(gateway: GatewaySettings, origin: OriginSettings): Environments {
  const originUrl = baseUrlOf({ host: origin.originHost, port: origin.originPort })
  const scheme = gateway.tlsCertFile === undefined ? 'http' : 'https'
  const gatewayUrl = baseUrlOf({ scheme, host: gateway.host, port: gateway.port })
  const isDefaultUpstream =
    gateway.upstreamUrl.href === new URL(String(gatewayTable.upstreamUrl.initial)).href
  return {
    gateway: { ...process.env, ...(isDefaultUpstream && { UPSTREAM_URL: originUrl }) },
    origin: {
      ...process.env,
      ...(origin.originPublicUrl === undefined && gateway.port !== 0 && { ORIGIN_PUBLIC_URL: gatewayUrl }),
    },
  }
}

function start(script: string, env: NodeJS.ProcessEnv): ChildProcess {
  const child = spawn(process.execPath, [join(import.meta.dirname, script)], { env, stdio: 'inherit' })
  running.add(child)
  child.once('exit', (code, signal) => {
    running.delete(child)
    // Killed by a signal: as a shell tells it. One that is to stop may have had no time to learn to stop in order.
    const killed = signal === null || stopping ? 0 : 128 + constants.signals[signal]
    status ||= code ?? killed
    process.exitCode = status
    stop('SIGTERM')
  })
  return child
}

/** Both processes take a signal that arrives twice, from a terminal and from here, as one. */
function stop(signal: NodeJS.Signals): void {
  stopping = true
  for (const child of running) child.kill(signal === 'SIGHUP' ? 'SIGTERM' : signal)
}

async function refuseTakenPort(gateway: GatewaySettings): Promise<void> {
  if (gateway.port === 0 || !(await isListening(gateway))) return
  throw new StartError(`cannot listen: port ${gateway.port} is in use by another process`)
}

/** Waits until the process takes connections. No: it has ended before, or is to. On a port that it chooses itself: yes. */
async function comesUp(gateway: GatewaySettings, child: ChildProcess): Promise<boolean> {
  while (gateway.port !== 0 && running.has(child) && !(await isListening(gateway))) await sleep(50)
  return running.has(child) && !stopping
}

function isListening({ host, port }: GatewaySettings): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: reachedHost(host), port })
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

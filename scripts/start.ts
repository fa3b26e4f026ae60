import { spawn, type ChildProcess } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { connect, createServer, type AddressInfo } from 'node:net'
import { constants } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { loadOriginSettings, type OriginSettings } from '../origin/settings.ts'
import { readConfigFile } from '../proxy/config/file/config-file.ts'
import { readYamlMapping } from '../proxy/config/file/yaml-document.ts'
import { isUpstreamGiven } from '../proxy/config/routes/is-upstream-given.ts'
import { loadGatewaySettings, type GatewaySettings } from '../proxy/config/settings.ts'
import { gatewayTable } from '../proxy/config/settings-table.ts'
import { readPrefixedVariables } from '../proxy/config/written/prefixed-variables.ts'
import { usesFallback } from '../proxy/limits/rules/upstream-routes.ts'
import { baseUrlOf, reachedHost } from '../shared/settings/base-url.ts'
import { onHangup } from '../shared/hangup.ts'
import { refuseArguments } from '../shared/no-arguments.ts'
import { tellFirstKey } from '../shared/tell-first-key.ts'
import { SettingsError } from '../shared/settings/settings-error.ts'
import {
  exitOnStartError,
  nameListenSetting,
  type ListenSettings,
  StartError,
} from '../shared/start-error.ts'
import { gatewayOptions } from '../shared/v8-gc.ts'

type Address = { readonly host: string | undefined; readonly port: number }

/**
 * How long this process stays after its children have exited. A terminal signals the whole process group, including npm, which forwards the
 * signal. If the forwarded signal arrived while this process exits, it would kill the process, as if the shutdown had failed.
 */
const LATE_SIGNAL_MS = 250
/** Stands for the port of an origin whose port is not chosen yet. The gateway never uses it. */
const PORT_TO_COME = 1

const running = new Set<ChildProcess>()
const chosenPorts = new Set<number>()
let gatewayProcess: ChildProcess | undefined
let stopping = false
let status = 0

refuseArguments(
  process.argv.slice(2),
  'settings come from the environment and sluice.yaml, see docs/configuration.md',
)

for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stop(signal))
// The gateway reads its certificate again, or logs that it ignores the signal.
onHangup(() => gatewayProcess?.kill('SIGHUP'))

const ofClients = { host: 'HOST', port: 'PORT' }
const ofOrigin = { host: 'ORIGIN_HOST', port: 'ORIGIN_PORT' }

try {
  const { gateway, origin } = loadSettings()
  const gatewayAddress = await choosePort({ host: gateway.host, port: gateway.port }, ofClients)
  const originAddress = await choosePort({ host: origin.originHost, port: origin.originPort }, ofOrigin)
  const originUrl = baseUrlOf(originAddress)

  await refuseTaken(gatewayAddress, 'set PORT to another')
  await refuseTaken({ host: gateway.adminHost, port: gateway.adminPort }, 'set ADMIN_PORT to another')
  const gatewayEnv = { ...process.env, PORT: String(gatewayAddress.port) }
  const backends = backendsOf(gateway)
  if (backends.length > 0 && !backends.some((url) => isOrigin(url, originUrl))) {
    process.stdout.write(`Only the gateway is started, in front of ${backends.join(', ')}\n`)
    gatewayProcess = start('proxy/main.ts', gatewayEnv)
  } else {
    await refuseTaken(
      originAddress,
      'set ORIGIN_PORT to another, or start only the gateway, in front of the service on that port: npm run gateway',
    )
    const scheme = gateway.tlsCertFile === undefined ? 'http' : 'https'
    const originEnv = {
      ...process.env,
      ORIGIN_PORT: String(originAddress.port),
      ORIGIN_PUBLIC_URL: origin.originPublicUrl ?? baseUrlOf({ scheme, ...gatewayAddress }),
    }
    // Start the origin first, so that it is up when the gateway accepts requests. The origin prints the first key only once, when this
    // process tells it to. By then, the printed command must work, and both processes must have started.
    const originProcess = start('origin/main.ts', originEnv, 'ipc')
    if (await comesUp(originAddress, originProcess)) {
      // With routes alone, requests that match none are answered 404, as without the origin.
      const upstream = backends.length > 0 && !namesBackend() ? {} : { UPSTREAM_URL: originUrl }
      gatewayProcess = start('proxy/main.ts', { ...gatewayEnv, ...upstream })
      if (await comesUp(gatewayAddress, gatewayProcess)) originProcess.send(tellFirstKey, () => undefined)
    }
  }
} catch (error) {
  exitOnStartError(error)
}

/** @throws SettingsError with every problem of both, without duplicates */
function loadSettings(): { gateway: GatewaySettings; origin: OriginSettings } {
  const origin = load(() => loadOriginSettings(process.env))
  // If no setting names a backend, the backend is the origin at its actual address, not the default URL.
  const originPort = origin.settings?.originPort
  const usesOrigin = originPort !== undefined && !namesBackend()
  const UPSTREAM_URL = baseUrlOf({ host: origin.settings?.originHost, port: originPort || PORT_TO_COME })
  const env = usesOrigin ? { ...process.env, UPSTREAM_URL } : process.env
  const gateway = load(() => loadGatewaySettings(env, process.cwd()))
  if (gateway.settings && origin.settings) return { gateway: gateway.settings, origin: origin.settings }
  const ofGateway = gateway.problems.map((problem) =>
    usesOrigin && problem.startsWith('UPSTREAM_URL: ')
      ? `ORIGIN_PORT: got ${originPort}, needs a different port than the one for clients (PORT)`
      : problem,
  )
  throw new SettingsError([...new Set([...ofGateway, ...origin.problems])])
}

type Loaded<Settings> = { readonly settings?: Settings; readonly problems: readonly string[] }

function load<Settings>(read: () => { settings: Settings }): Loaded<Settings> {
  try {
    return { settings: read().settings, problems: [] }
  } catch (error) {
    if (error instanceof SettingsError) return { problems: error.problems }
    throw error
  }
}

/** Whether the environment or the settings file names a backend, no matter what else is wrong there. */
function namesBackend(): boolean {
  const { env } = readPrefixedVariables(process.env)
  const file = readConfigFile(env['CONFIG_FILE'] || undefined, process.cwd())
  return isUpstreamGiven(
    env,
    file && 'text' in file ? { given: readYamlMapping(file.text, env).value } : undefined,
  )
}

/** The URLs of the backends that the settings name: that of `upstream`, or without it those of routes. */
function backendsOf({ upstreamUrl, routes = [] }: GatewaySettings): string[] {
  if (namesBackend()) return [upstreamUrl.href]
  // Routes that only take requests over a limit come in addition to a backend.
  return usesFallback(false, routes) ? [] : [...new Set(routes.flatMap(({ upstream }) => upstream))]
}

/** Whether a backend is the origin: by the default URL or by the origin's own address. */
function isOrigin(url: string, originUrl: string): boolean {
  const origins = [String(gatewayTable.upstreamUrl.initial), originUrl]
  return origins.some((origin) => new URL(origin).href === new URL(url).href)
}

/**
 * Replaces port 0 by a free port, because each process must know the port of the other before that one listens. The port is below the range
 * for outgoing connections (from 32768 on Linux), one of which could take it in the meantime.
 */
function choosePort({ host, port }: Address, settings: ListenSettings, attempts = 20): Promise<Address> {
  if (port !== 0) return Promise.resolve({ host, port })
  const candidate = attempts === 0 ? 0 : randomInt(32_000, 32_768)
  return new Promise((resolve, reject) => {
    const next = (): void => resolve(choosePort({ host, port }, settings, attempts - 1))
    if (chosenPorts.has(candidate)) return next()
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE' && attempts > 0) next()
      else reject(nameListenSetting(error, settings, host))
    })
    server.listen(candidate, host, () => {
      const { port: free } = server.address() as AddressInfo
      chosenPorts.add(free)
      server.close(() => resolve({ host, port: free }))
    })
  })
}

/** @param channel `ipc` for a process that waits for a message */
function start(script: string, env: NodeJS.ProcessEnv, channel: 'ipc' | 'none' = 'none'): ChildProcess {
  const args = [...gatewayOptions, join(import.meta.dirname, '..', script)]
  const child = spawn(process.execPath, args, {
    env,
    stdio: ['inherit', 'inherit', 'inherit', ...(channel === 'ipc' ? [channel] : [])],
  })
  running.add(child)
  if (stopping) child.kill()
  child.once('exit', (code, signal) => {
    running.delete(child)
    // If a signal killed the child, use the exit status that a shell would report. While stopping, it counts as 0: the child may not have
    // installed its signal handler yet.
    const killed = signal === null || stopping ? 0 : 128 + constants.signals[signal]
    status ||= code ?? killed
    process.exitCode = status
    stop('SIGTERM')
    if (running.size === 0) setTimeout(() => undefined, LATE_SIGNAL_MS)
  })
  return child
}

/** Forwards a signal to both processes. If it arrives twice, from a terminal and from here, they count it as one. */
function stop(signal: NodeJS.Signals): void {
  stopping = true
  for (const child of running) child.kill(signal)
}

/** Called before anything is started, so that no process logs that it listens and is then stopped at once. */
async function refuseTaken(address: Address, remedy: string): Promise<void> {
  if (address.port === 0 || !(await isListening(address))) return
  throw new StartError(`cannot listen: port ${address.port} is in use by another process, ${remedy}`)
}

/** Waits until the process accepts connections. Returns false if it has exited before, or is being stopped. */
async function comesUp(address: Address, child: ChildProcess): Promise<boolean> {
  while (running.has(child) && !(await isListening(address))) await sleep(50)
  return running.has(child) && !stopping
}

function isListening({ host, port }: Address): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: reachedHost(host), port })
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

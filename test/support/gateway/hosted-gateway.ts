import { atEndOfFile } from '../run/at-end.ts'
import type { Bounds } from '../../../proxy/config/bounds.ts'
import { gatewayDefaults, send, startGateway, type GatewayProcess } from './gateway.ts'
import { spawnNode, type NodeProcess } from './process.ts'

/** A gateway that may share its process with others. `output` and `waitForLine` read only its own log. */
export type HostedGateway = Pick<GatewayProcess, 'port' | 'adminPort' | 'decisionsPort' | 'send'> &
  Pick<NodeProcess, 'output' | 'waitForLine'>

type Host = { readonly process: NodeProcess; readonly port: number }

/** Bounds how much gateways leave behind in one process, such as listeners for its errors. */
const filesOfHost = 24
/** The variable that changes some bounds of a hosted gateway. */
export function otherBounds(bounds: Partial<Bounds>): { TEST_BOUNDS: string } {
  return { TEST_BOUNDS: JSON.stringify(bounds) }
}

/** Bounded because each wait for a line reads all of the output. */
const maxOutputLength = 500_000

let host: Promise<Host> | undefined
let filesLeft = 0
let unexpectedEnd: Error | undefined

async function startHost(): Promise<Host> {
  const started = spawnNode('test/support/gateway/gateway-host.ts', {}, [], { staysAfterFile: true })
  const [, port] = await started.waitForLine(/^port (\d+)$/)
  filesLeft = filesOfHost
  const own = host
  void started.exit.then((status) => {
    if (host !== own) return
    host = undefined
    unexpectedEnd = new Error(`the process of hosted gateways ended with ${status}:\n${started.output()}`)
  })
  return { process: started, port: Number(port) }
}

atEndOfFile(async () => {
  const own = host
  const problem = unexpectedEnd
  unexpectedEnd = undefined
  if (problem) throw problem
  if (!own) return
  // If the process did not start, there is nothing to close.
  const started = await own.catch(() => undefined)
  filesLeft -= 1
  const mayStay = filesLeft > 0 && started !== undefined && started.process.output().length < maxOutputLength
  if (mayStay && (await closesAll(started.port))) return
  host = undefined
  await started?.process.stop('SIGKILL')
})

/** Whether the host closes all its gateways soon. */
async function closesAll(port: number): Promise<boolean> {
  const signal = AbortSignal.timeout(1000)
  const reply = await fetch(`http://127.0.0.1:${port}/`, { method: 'DELETE', signal }).catch(() => undefined)
  return reply?.ok === true
}

/**
 * Starts a gateway on free ports, and waits until it accepts requests. It runs all of the product except `main.ts`, in a process that it
 * shares only with other hosted gateways, which takes a twentieth of the time of a new process. It is closed at the end of the test file.
 * Tests about the process, its start or its end use `startGateway` instead. With `WORKERS` or `NODE_OPTIONS` it is a process of its own.
 */
export async function startHosted(env: Record<string, string> = {}): Promise<HostedGateway> {
  if ('WORKERS' in env || 'NODE_OPTIONS' in env) {
    const { process: own, ...gateway } = await startGateway(env)
    return { ...gateway, output: () => own.output(), waitForLine: (...line) => own.waitForLine(...line) }
  }
  host ??= startHost()
  const { process, port: control } = await host
  const reply = await send(control, 'POST', '/', { body: JSON.stringify({ ...gatewayDefaults, ...env }) })
  if (reply.status !== 200) throw new Error(`the gateway does not start: ${reply.body}`)
  const started = JSON.parse(reply.body) as {
    number: number
    port: number
    adminPort: number
    decisionsPort?: number
  }
  const { number, port, adminPort, decisionsPort = 0 } = started
  const mark = `"hosted":${number},`
  return {
    port,
    adminPort,
    decisionsPort,
    send: (...request) => send(port, ...request),
    output: () =>
      process
        .output()
        .split('\n')
        .filter((line) => line.includes(mark))
        .join('\n'),
    waitForLine: ({ source, flags }, timeoutMs) =>
      process.waitForLine(new RegExp(`^(?=.*${mark}).*?(?:${source})`, flags), timeoutMs),
  }
}

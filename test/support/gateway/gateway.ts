import {
  request as httpRequest,
  type Agent,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http'
import { connect } from 'node:net'
import { spawnNode, START_MS, type NodeProcess } from './process.ts'

export type GatewayProcess = {
  readonly port: number
  readonly adminPort: number
  /** 0 without a decisions listener. */
  readonly decisionsPort: number
  readonly process: NodeProcess
  /** Sends a request to the gateway and reads the whole response. */
  send(method: string, path: string, options?: SendOptions): Promise<Reply>
}

export type SendOptions = {
  readonly headers?: OutgoingHttpHeaders
  readonly body?: string | Buffer
  /** The client's address, which must be a loopback address: `127.0.0.2` is another client than `127.0.0.1`. */
  readonly from?: string
  /** The agent whose connections are used. Without an agent, the request has a connection of its own. */
  readonly agent?: Agent
}

export type Reply = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: string }

/**
 * Keeps gateways from reading a developer's `sluice.yaml` in this repository, and gives Redis time to answer on a busy machine. Tests about
 * `STORE_TIMEOUT` set it themselves.
 */
export const gatewayDefaults = {
  HOST: '127.0.0.1',
  PORT: '0',
  ADMIN_PORT: '0',
  CONFIG_FILE: 'test/support/gateway/defaults.yaml',
  STORE_TIMEOUT: '5s',
}

/** Starts the gateway as a process of its own on free ports. */
export function spawnGateway(env: Record<string, string>): NodeProcess {
  return spawnNode('proxy/main.ts', { ...gatewayDefaults, ...env })
}

/** Starts the gateway as `spawnGateway` does, and waits until it accepts requests. */
export async function startGateway(
  env: Record<string, string> = {},
  timeoutMs = START_MS,
): Promise<GatewayProcess> {
  const gateway = spawnGateway(env)
  const [line] = await gateway.waitForLine(/^.*"msg":"listening".*$/, timeoutMs)
  const ports = JSON.parse(line) as { port: number; adminPort: number; decisionsPort?: number }
  const { port, adminPort, decisionsPort = 0 } = ports
  return { port, adminPort, decisionsPort, process: gateway, send: (...request) => send(port, ...request) }
}

/** Sends one request, over a connection of its own unless an agent is given. Rejects if the connection ends before the response does. */
export function send(port: number, method: string, path: string, options: SendOptions = {}): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({
      host: '127.0.0.1',
      port,
      method,
      path,
      agent: options.agent ?? false,
      ...(options.headers && { headers: options.headers }),
      ...(options.from !== undefined && { localAddress: options.from }),
    })
    request.on('error', reject)
    request.on('response', (response) => {
      let body = ''
      response.setEncoding('latin1')
      response.on('data', (text: string) => (body += text))
      response.on('error', reject)
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }))
    })
    request.end(options.body)
  })
}

/** Sends raw bytes over a connection of its own. Resolves with everything received once the gateway has closed the connection. */
export function sendRaw(port: number, bytes: string, timeoutMs = 5_000): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes, 'latin1'))
    const timer = setTimeout(() => socket.destroy(), timeoutMs)
    socket.on('data', (chunk) => (received += chunk.toString('latin1')))
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error)
    })
    socket.on('close', () => {
      clearTimeout(timer)
      resolve(received)
    })
  })
}

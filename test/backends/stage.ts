import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startServer } from '../../bench/measure/processes.ts'
import { freePort } from '../support/network/ports.ts'
import { askAll } from './ask.ts'
import type { Backend } from './backends.ts'
import { DEVICE_SECRET } from '../support/gateway/every-kind.ts'
import { limitsOf, routes, type Route } from './routes.ts'
import { handlerReached } from './verdict.ts'

/** A backend, and a gateway in front of it that counts its routes. */
export type Stage = {
  readonly backendPort: number
  readonly gatewayPort: number
  readonly routes: readonly Route[]
  /** The last output of the backend. */
  output(): string
  stop(): Promise<void>
}

const gatewayScript = join(import.meta.dirname, '../../proxy/main.ts')

/** @param folder for files that the two write */
export async function openStage(backend: Backend, folder: string): Promise<Stage> {
  const backendPort = await freePort()
  const limited = backend.routes ?? routes
  const server = await startServer(
    backend.start(backendPort, mkdtempSync(join(folder, 'backend-'))),
    backendPort,
  )
  const configFile = join(folder, 'sluice.yaml')
  writeFileSync(configFile, limitsOf(limited))
  const gatewayPort = await freePort()
  const env = {
    HOST: '127.0.0.1',
    PORT: String(gatewayPort),
    ADMIN_PORT: '0',
    LOG_LEVEL: 'silent',
    CONFIG_FILE: configFile,
    DEVICE_SECRET,
    UPSTREAM_URL: `http://127.0.0.1:${backendPort}`,
  }
  const gateway = await startServer({ program: process.execPath, args: [gatewayScript], env }, gatewayPort)
  const stop = async (): Promise<void> => {
    await Promise.all([server.stop(), gateway.stop()])
  }
  return { backendPort, gatewayPort, routes: limited, output: () => server.output(), stop }
}

/** The rules of the routes that the backend does not serve at their plain path. Retries for some time. */
export async function findUnserved({ backendPort, routes: served }: Stage): Promise<string[]> {
  const plain = served.map(({ method, path }) => ({ method, target: path, headers: [] }))
  for (let attempt = 0; ; attempt++) {
    const responses = await askAll(backendPort, plain, 5_000)
    const unserved = served.filter(({ name }, i) => {
      const response = responses[i]
      return !response || handlerReached(response) !== name
    })
    if (unserved.length === 0 || attempt === 50) return unserved.map(({ rule }) => rule)
    await sleep(100)
  }
}

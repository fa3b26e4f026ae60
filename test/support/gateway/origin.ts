import { join } from 'node:path'
import { spawnNode, type NodeProcess } from './process.ts'
import { makeTemporaryDirectory } from '../run/temporary-directory.ts'

export type OriginProcess = {
  readonly port: number
  readonly process: NodeProcess
  /** The key that was printed at the first start. */
  readonly key: string
  /** Path of the keys' database. */
  readonly database: string
}

/** Starts the origin as a process of its own, with a free port and a database of its own. */
export async function startOrigin(env: Record<string, string> = {}): Promise<OriginProcess> {
  const database = join(makeTemporaryDirectory(), 'origin.db')
  const origin = spawnNode('origin/main.ts', { ORIGIN_PORT: '0', ORIGIN_DB: database, ...env })
  const [line] = await origin.waitForLine(/^.*"msg":"listening".*$/)
  const { port } = JSON.parse(line) as { port: number }
  const [key] = await origin.waitForLine(/sluice_[\w-]{43}/)
  return { port, process: origin, key, database }
}

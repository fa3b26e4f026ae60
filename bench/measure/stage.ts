import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { atEnd } from '../../test/support/run/at-end.ts'
import { certificateFiles } from '../../test/support/network/certificates.ts'
import { freePort } from '../../test/support/network/ports.ts'
import { launchRedisServer, obtainRedisBinary } from '../../test/support/redis/redis-server.ts'
import { startBackend } from '../backend.ts'
import { connectCounters, type Counters } from './counters.ts'
import type { Running } from './processes.ts'
import type { Scenario } from '../scenarios.ts'
import { bundleGateway } from '../subjects/sluice.ts'
import type { Setup, Subject } from '../subjects/subject.ts'

/** The parts that all subjects share: one backend and one Redis. */
export type Stage = {
  readonly backendPort: number
  readonly redisPid: number
  readonly counters: Counters
  /**
   * Starts a subject for a scenario with empty counters, and stops it when `use` is done. Rejects if `use` rejects, with the last output of
   * the subject.
   */
  withSubject<Result>(
    subject: Subject,
    scenario: Scenario,
    use: (running: OnStage) => Promise<Result>,
    nodeArgs?: readonly string[],
  ): Promise<Result>
  close(): Promise<void>
}

export type OnStage = Running & { readonly port: number }

/** @param connections the number of connections that the load opens */
export async function openStage(connections: number): Promise<Stage> {
  const binary = obtainRedisBinary()
  if (binary === undefined) throw new Error('The benchmark needs redis-server on this machine.')
  bundleGateway()
  const directory = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  atEnd(() => rmSync(directory, { recursive: true, force: true }))

  const redis = await launchRedisServer(binary)
  const counters = await connectCounters(redis.url)
  const backendPort = await freePort()
  const backend = await startBackend(backendPort, directory)
  return {
    backendPort,
    redisPid: redis.pid,
    counters,
    async withSubject(subject, { name, store, protocol }, use, nodeArgs = []) {
      await counters.flush()
      const port = await freePort()
      const redisUrl = store === 'redis' ? redis.url : undefined
      const setup = { port, backendPort, redisUrl, connections, directory, nodeArgs }
      const running = await subject.start({ ...setup, tls: protocol && writePair(directory) })
      try {
        return await use({ ...running, port })
      } catch (cause) {
        throw new Error(`${subject.name}, ${name}; it wrote:\n${running.output()}`, { cause })
      } finally {
        await running.stop()
      }
    },
    async close() {
      counters.close()
      await Promise.all([backend.stop(), redis.stop()])
    },
  }
}

/** HAProxy needs certificate and key in one file. */
function writePair(directory: string): NonNullable<Setup['tls']> {
  const { cert, key } = certificateFiles('first')
  const pair = join(directory, 'pair.pem')
  writeFileSync(pair, readFileSync(cert, 'utf8') + readFileSync(key, 'utf8'))
  return { cert, key, pair }
}

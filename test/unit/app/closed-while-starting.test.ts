import { createServer } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { composeGateway } from '../../../proxy/app/gateway.ts'
import { readSettings } from '../../../proxy/app/reload/settings-source.ts'
import { composeNames } from '../../../proxy/app/upstreams/names.ts'
import { createLog } from '../../../shared/log.ts'
import { freePort } from '../../support/network/ports.ts'

const log = createLog('gateway', 'fatal')

// A gateway listens to uncaught exceptions until its process ends.
const ofOthers = process.listeners('uncaughtException')
afterEach(forgetListeners)

function forgetListeners(): void {
  for (const listener of process.listeners('uncaughtException'))
    if (!ofOthers.includes(listener)) process.off('uncaughtException', listener)
}

async function compose(env: Record<string, string>) {
  const { settings, source } = readSettings(
    {
      CONFIG_FILE: 'test/support/gateway/defaults.yaml',
      UPSTREAM_URL: 'http://127.0.0.1:9',
      TRUSTED_PROXIES: '127.0.0.1',
      ...env,
    },
    process.cwd(),
  )
  return composeGateway({ ...settings, shutdownDelayMs: 0, shutdownGraceMs: 0 }, log, source, composeNames())
}

/** Whether another server can listen on the port. */
const isFree = (port: string): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
      .once('error', () => resolve(false))
      .listen({ port: Number(port), exclusive: true }, () => server.close(() => resolve(true)))
  })

/** Most of a start takes fewer turns. Another thread looks up names, and on a busy machine that may take many more. */
const FEW_TURNS = 24
const MAX_TURNS = 1e6

/** Two kinds of turns: of the promise queue, and of the event loop. */
const turns = [() => Promise.resolve(), () => new Promise<void>((resolve) => setImmediate(resolve))]

test.each(['127.0.0.1', 'localhost'])(
  'a gateway that is closed at any moment of its start does not log that it listens, and does not listen: HOST=%s',
  async (HOST) => {
    const endings = new Set<string>()
    for (
      let waited = 0;
      waited < FEW_TURNS || (!endings.has('listened first') && waited < MAX_TURNS);
      waited += waited < FEW_TURNS ? 1 : waited
    ) {
      for (const turn of turns) {
        const [PORT, ADMIN_PORT, DECISIONS_PORT] = [
          String(await freePort()),
          String(await freePort()),
          String(await freePort()),
        ]
        const gateway = await compose({ HOST, PORT, ADMIN_HOST: HOST, ADMIN_PORT, DECISIONS_PORT })
        let told: unknown = 'nothing yet'
        const begun = gateway.listen().then((ports) => (told = ports))
        for (let i = 0; i < waited; i++) await turn()
        const before = told
        await gateway.close()
        const ports = await begun
        endings.add(before === 'nothing yet' ? 'closed first' : 'listened first')
        if (before === 'nothing yet') expect(ports, `after ${waited} turns`).toBeUndefined()
        for (const port of [PORT, ADMIN_PORT, DECISIONS_PORT])
          expect(await isFree(port), `a port after ${waited} turns`).toBe(true)
        forgetListeners()
      }
    }
    expect([...endings].sort()).toEqual(['closed first', 'listened first'])
  },
)

import { join } from 'node:path'
import { run } from './run.ts'
import { trustingEnvironment, type Way } from './stage.ts'

/** Runs one of `clients/` over a way, and returns the JSON that it prints. */
export async function runClient(name: string, way: Way, args: readonly string[] = []): Promise<object> {
  const script = join(import.meta.dirname, 'clients', name)
  const output = await run([process.execPath, script, way.origin, way.protocol, ...args], {
    // Logs the commands to the browser, which are shown if the client fails.
    env: { ...trustingEnvironment, DEBUG: 'pw:api', DEBUG_COLORS: '0' },
  })
  return JSON.parse(output) as object
}

import { setImmediate } from 'node:timers/promises'

/**
 * Waits until a gateway in this process, which counts in memory, has counted the refusals so far for bans. It does that
 * after the response, and loads a module at the first of each rule.
 */
export async function refusalsCounted(): Promise<void> {
  // Asked for later than by the gateway, it comes later.
  await import('../../../proxy/limits/clients/ban-counts.ts')
  await setImmediate()
}

import { setImmediate } from 'node:timers/promises'

/**
 * Waits until a gateway in this process, which counts in memory, has counted the refusals so far for bans. The gateway counts them after
 * the response, and loads a module at the first refusal of each rule.
 */
export async function refusalsCounted(): Promise<void> {
  // This import begins after the gateway's, so it resolves after it.
  await import('../../../proxy/limits/clients/ban-counts.ts')
  await setImmediate()
}

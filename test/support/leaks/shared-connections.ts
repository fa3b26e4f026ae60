import http from 'node:http'
import https from 'node:https'

/** Where `fetch` keeps its connections, by the version of undici in Node or of the package. */
const dispatchers = [Symbol.for('undici.globalDispatcher.1'), Symbol.for('undici.globalDispatcher.2')]

/**
 * Closes the connections that `fetch` and `http.request` keep for the next request to the same server, because another server may soon use
 * its port.
 */
export async function closeSharedConnections(): Promise<void> {
  http.globalAgent.destroy()
  https.globalAgent.destroy()
  const globals = globalThis as unknown as Record<symbol, { destroy(): Promise<void> } | undefined>
  const used = dispatchers.flatMap((name) => globals[name] ?? [])
  if (used.length === 0) return
  await Promise.all(used.map((dispatcher) => dispatcher.destroy()))
  // Loaded lazily, as most test files do not use `fetch`.
  const { Agent, setGlobalDispatcher } = await import('undici')
  setGlobalDispatcher(new Agent())
}

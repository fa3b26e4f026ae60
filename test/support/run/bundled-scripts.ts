import { join } from 'node:path'

/** The scripts to bundle, as paths from the repository's root. All other scripts run from their sources. */
export const bundledScripts: readonly string[] = [
  'proxy/main.ts',
  'proxy/cli/main.ts',
  'origin/main.ts',
  'origin/keys.ts',
  'scripts/start.ts',
  'test/support/gateway/cluster-process.ts',
  'test/support/gateway/gateway-host.ts',
  'test/support/gateway/command-host.ts',
]

/** Scripts that load `poolCheck`. */
export const gatewayScripts: readonly string[] = ['proxy/main.ts', 'test/support/gateway/gateway-host.ts']

/** Starts the gateway and the demo service, which it finds by paths relative to its own. */
export const startScript = 'scripts/start.ts'

/** Ends a gateway whose pool of backend connections is in an invalid state. */
export const poolCheck = 'test/support/gateway/check-pool.ts'

/** In a bundle, replaces the module that collects garbage at the start of a gateway. */
export const noCollection = 'test/support/gateway/no-collection.ts'

/** The variable with the folder of the bundles, for the processes that run tests. If it is unset, they start scripts from the sources. */
export const BUNDLES = 'TEST_BUNDLES'

/** The path of a script's bundle in this folder. A gateway's bundle includes `poolCheck`. */
export function bundledPath(folder: string, script: string): string {
  return join(folder, script.replace(/\.ts$/, ''), 'main.js')
}

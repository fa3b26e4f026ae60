import { join } from 'node:path'

/** Paths from the repository's root. All others are run as they are. */
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

/** Starts the gateway and the demo service, by their paths beside its own. */
export const startScript = 'scripts/start.ts'

/** Ends a gateway whose pool of connections to the backend is not as it has to be. */
export const poolCheck = 'test/support/gateway/check-pool.ts'

/** In a bundle it takes the place of what collects garbage at the start of a gateway. */
export const noCollection = 'test/support/gateway/no-collection.ts'

/** The variable with the folder of the bundles, for the processes that run tests. Without it they start the sources. */
export const BUNDLES = 'TEST_BUNDLES'

/** The bundled form of a script in this folder. `poolCheck` is part of it. */
export function bundledPath(folder: string, script: string): string {
  return join(folder, script.replace(/\.ts$/, ''), 'main.js')
}

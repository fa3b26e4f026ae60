import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gatewayOptions } from '../../shared/v8-gc.ts'
import { startServer } from '../measure/processes.ts'
import type { Setup, Subject } from './subject.ts'

const root = join(import.meta.dirname, '../..')
/** The program that users start. */
const bundled = [join(root, 'dist/proxy/main.js')]
/** The program that is profiled, because profiles name files. */
const sources = [join(root, 'scripts/run.js'), 'proxy/main.ts']

type Variation = { readonly rules?: number; readonly workers?: number }

/** Builds the bundles of the gateway from its sources. */
export function bundleGateway(): void {
  execFileSync(process.execPath, [join(root, 'scripts/bundle.ts')], { stdio: 'inherit' })
}

/** The gateway itself, with its defaults unless the comparison needs another setting. */
function sluiceWith(name: string, { rules = 0, workers = 1 }: Variation = {}): Subject {
  return {
    name,
    kind: 'sluice',
    missing: () => undefined,
    start: (setup) => {
      const { nodeArgs = [] } = setup
      const configFile = join(setup.directory, `${name.replaceAll(/\W+/g, '-')}.yaml`)
      writeFileSync(configFile, limitsTable(rules))
      return startServer(
        {
          program: process.execPath,
          args: [...gatewayOptions, ...nodeArgs, ...(nodeArgs.length > 0 ? sources : bundled)],
          env: environment(setup, configFile, workers),
          directory: setup.directory,
        },
        setup.port,
      )
    },
  }
}

function environment(setup: Setup, configFile: string, workers: number): Record<string, string> {
  const { port, backendPort, redisUrl, tls } = setup
  return {
    HOST: '127.0.0.1',
    PORT: String(port),
    ADMIN_PORT: '0',
    UPSTREAM_URL: `http://127.0.0.1:${backendPort}`,
    TRUSTED_PROXIES: '127.0.0.1',
    CONFIG_FILE: configFile,
    WORKERS: String(workers),
    ...(redisUrl !== undefined && { REDIS_URL: redisUrl }),
    ...(tls && { TLS_CERT_FILE: tls.cert, TLS_KEY_FILE: tls.key }),
  }
}

/** The two limits that every subject has, after other limits with every kind of pattern that match other paths. */
function limitsTable(rules: number): string {
  const others = Array.from({ length: rules }, (_, i) => {
    const path = [`/api/v1/things-${i}`, `/api/v1/things-${i}/:id`, `/api/v1/things-${i}/parts/*`][i % 3]
    return rule(`rule-${i}`, `GET ${path}`, 1_000_000_000)
  })
  const both = [rule('limited', '* /limited', 1_000_000_000), rule('refused', '* /refused', 1)]
  return ['limits:', ...others, ...both].join('\n')
}

function rule(name: string, match: string, quota: number): string {
  return `  - { name: ${name}, match: '${match}', requests: ${quota}, window: 1h }`
}

export const sluice = sluiceWith('sluice')
export const sluiceByRules = [10, 1_000, 10_000].map((rules) =>
  sluiceWith(`sluice, ${rules} rules`, { rules }),
)
export const sluiceByWorkers = [1, 2].map((workers) =>
  sluiceWith(`sluice, ${workers} worker${workers === 1 ? '' : 's'}`, { workers }),
)

import type { Step } from '../tiers/step.ts'
import { engines } from './engines.ts'

/** Tests of everything that depends on the engine: commands, errors, rights, Sentinel, the cluster. */
const COUNTING = '--project sockets test/contract test/integration test/e2e/redis-tls.test.ts'
const FAULTS = [
  '--project fault test/fault test/contract/redis-cluster.test.ts',
  ...['failover', 'failed-logins', 'hung-node', 'moved-cluster', 'redis-rights', 'resharding'].map(
    (name) => `test/long/${name}.test.ts`,
  ),
].join(' ')

/** For each engine, the tests of counting and of faults, with no other engine installed: `npm run test:engines`. */
export function stepsOfEngines(): Step[] {
  return engines.flatMap(({ name }) => {
    const command = `engine=$(node test/engines/obtain.ts ${name}) && REDIS_SERVER=$engine npx vitest run`
    return [
      { name, command, tests: COUNTING, limitMinutes: 20 },
      { name: `${name}, faults`, command, tests: FAULTS, limitMinutes: 40 },
    ]
  })
}

import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, release, totalmem, type } from 'node:os'
import { join } from 'node:path'
import { findProgram } from '../subjects/system-proxies.ts'

/** The machine and the software of a run. */
export type Machine = {
  readonly date: string
  readonly processor: string
  readonly cores: number
  readonly memoryGib: number
  readonly kernel: string
  /** Load averages over one minute before and after the run, which show other load. */
  readonly load: { readonly before: number; after: number }
  readonly versions: Readonly<Record<string, string>>
}

const root = join(import.meta.dirname, '../..')

export function describeMachine(): Machine {
  return {
    date: new Date().toISOString().slice(0, 10),
    processor: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    memoryGib: Math.round(totalmem() / 2 ** 30),
    kernel: `${type()} ${release()}`,
    load: { before: currentLoad(), after: NaN },
    versions: {
      node: process.versions.node,
      ...systemVersions(),
      ...packageVersions(),
    },
  }
}

export function currentLoad(): number {
  return Math.round((loadavg()[0] ?? 0) * 100) / 100
}

function systemVersions(): Record<string, string> {
  const commands: readonly [string, string, RegExp][] = [
    ['nginx', '-v', /nginx\/([\d.]+)/],
    ['haproxy', '-v', /version ([\w.+-]+)/],
    ['redis-server', '--version', /v=([\d.]+)/],
    ['wrk', '-v', /wrk (\S+)/],
  ]
  return Object.fromEntries(
    commands.flatMap(([name, option, pattern]) => {
      const program = findProgram(name)
      if (program === undefined) return []
      const { stdout, stderr } = spawnSync(program, [option], { encoding: 'utf8' })
      return [[name, pattern.exec(stdout + stderr)?.[1] ?? 'unknown']]
    }),
  )
}

function packageVersions(): Record<string, string> {
  const { dependencies } = JSON.parse(readFileSync(join(root, 'bench/package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  return dependencies
}

import type { ThrottledClient } from '../../limits/clients/throttled-clients.ts'
import { chooseReported, REPORTED } from './reported-clients.ts'
import type { HealthReport } from '../health.ts'

/** The report of a process to the other replicas, sent while an operator reads the reports. */
export type ReplicaReport = {
  /** The id of the gateway, the same in all its processes. */
  readonly gateway: string
  /** The name of the machine or container. */
  readonly host: string
  readonly version: string
  readonly tableHash: string
  readonly status: HealthReport['status']
  /** A bounded part of the clients over a limit, see `chooseReported`. */
  readonly limited: readonly ThrottledClient[]
}

/** The replicas that reported within the last seconds, including the gateway's own processes. */
export type Replicas = {
  /** The `gateway` that reads the reports. */
  readonly own: string
  readonly reports: readonly ReplicaReport[]
}

/** Maximum length of the JSON in UTF-16 units: keys and names of policies are ASCII, labels are short. */
const MAX_TEXT_LENGTH = 24 * 1024

/** Writes a report for Redis. Leaves out clients that do not fit. */
export function writeReport({ limited, ...about }: ReplicaReport): string {
  const rows: string[] = []
  let length = JSON.stringify(about).length
  for (const { policy, partitionKey, refusals, resetMs, isShadow, label } of chooseReported(limited)) {
    const row = [policy, partitionKey, refusals, Math.ceil(resetMs), isShadow ? 1 : 0]
    const text = JSON.stringify(label === undefined ? row : [...row, label])
    length += text.length + 1
    if (length > MAX_TEXT_LENGTH) break
    rows.push(text)
  }
  return `${JSON.stringify(about).slice(0, -1)},"limited":[${rows.join(',')}]}`
}

/**
 * Parses a report; undefined if a gateway did not write it. Leaves out clients whose windows have since been reset.
 *
 * @param ageMs how long ago the report was written
 */
export function readReport(text: string, ageMs: number): ReplicaReport | undefined {
  const value = parse(text)
  if (typeof value !== 'object' || value === null) return undefined
  const { gateway, host, version, tableHash, status, limited } = value as Readonly<Record<string, unknown>>
  if (typeof gateway !== 'string' || typeof host !== 'string' || typeof version !== 'string') return undefined
  if (typeof tableHash !== 'string' || !isStatus(status) || !Array.isArray(limited)) return undefined
  const clients = limited.slice(0, REPORTED).flatMap((row: unknown) => readRow(row, ageMs) ?? [])
  return { gateway, host, version, tableHash, status, limited: clients }
}

function readRow(row: unknown, ageMs: number): ThrottledClient | undefined {
  if (!Array.isArray(row)) return undefined
  const [policy, partitionKey, refusals, resetMs, shadow, label] = row as readonly unknown[]
  if (typeof policy !== 'string' || typeof partitionKey !== 'string') return undefined
  if (typeof refusals !== 'number' || typeof resetMs !== 'number' || resetMs <= ageMs) return undefined
  return {
    policy,
    partitionKey,
    refusals,
    resetMs: resetMs - ageMs,
    isShadow: shadow === 1,
    ...(typeof label === 'string' && { label }),
  }
}

function isStatus(value: unknown): value is HealthReport['status'] {
  return value === 'starting' || value === 'ready' || value === 'stopping'
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Describes each gateway, including the number of its processes that reported. */
export function describeReplicas({ own, reports }: Replicas): object[] {
  const gateways = [...Map.groupBy(reports, ({ gateway }) => gateway)]
  return gateways
    .map(([gateway, processes]) => {
      const [first] = processes
      return {
        host: first?.host ?? '',
        self: gateway === own,
        version: first?.version ?? '',
        status: processes.some(({ status }) => status === 'ready') ? 'ready' : (first?.status ?? 'starting'),
        // While a gateway changes its table, its workers may have different tables.
        tableHashes: [...new Set(processes.map(({ tableHash }) => tableHash))].sort(),
        workers: processes.length,
      }
    })
    .sort((a, b) => Number(b.self) - Number(a.self) || (a.host < b.host ? -1 : Number(a.host > b.host)))
}

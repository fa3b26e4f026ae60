import type { ListUse } from '../telemetry.ts'
import type { Counters } from './counters.ts'
import { by, counter, gauge, single } from './metric.ts'
import type { Metric, MetricValue } from './prometheus.ts'

/** Returns the metrics of all bounded tables, whose use is read on each call. */
export function describeTables({ tables }: Counters): Metric[] {
  const uses = [...tables].map(([table, read]) => ({ table, ...read() }))
  const byTable = (field: 'size' | 'capacity' | 'evictions'): MetricValue[] =>
    uses.map((use) => ({ labels: { table: use.table }, value: use[field] }))
  return [
    gauge('sluice_table_entries', 'Entries in each queue, cache or table of bounded size', byTable('size')),
    gauge(
      'sluice_table_capacity',
      'Maximum entries of each queue, cache or table of bounded size',
      byTable('capacity'),
    ),
    counter(
      'sluice_table_evictions_total',
      'Entries evicted from each queue, cache or table to make room',
      byTable('evictions'),
    ),
  ]
}

/** Returns the metrics of lists and of databases. If several processes read a file, the worst result counts. */
export function describeLists(counters: Counters): Metric[] {
  const { denials, addressLists } = counters
  const lists = addressLists()
  const byList = (valueOf: (use: ListUse) => number): MetricValue[] =>
    lists.map((use) => ({ labels: { list: use.list }, value: valueOf(use) }))
  return [
    counter(
      'sluice_denied_requests_total',
      'Requests that a list refused before any rule applied, by list: denyList, a file of it, or crowdsec',
      by('list', Object.fromEntries(denials)),
    ),
    counter(
      'sluice_crowdsec_polls_total',
      'Polls of the local API of CrowdSec, by outcome',
      by('outcome', counters.crowdsecPolls),
    ),
    gauge(
      'sluice_crowdsec_last_success_timestamp_seconds',
      'Unix time of the last time that decisions of CrowdSec were read; 0 before',
      single(counters.crowdsecPolledAtMs / 1000),
      'max',
    ),
    gauge(
      'sluice_list_entries',
      'Entries of a list of addresses, by its file',
      byList(({ entries }) => entries),
      'min',
    ),
    gauge(
      'sluice_list_last_reload_successful',
      '1 if the list of addresses was valid when it was last read, else 0',
      byList(({ lastReadSucceeded }) => (lastReadSucceeded ? 1 : 0)),
      'min',
    ),
    gauge(
      'sluice_list_last_reload_success_timestamp_seconds',
      'Unix time of the last time that the list of addresses was read and valid',
      byList(({ lastSuccessAtMs }) => lastSuccessAtMs / 1000),
      'min',
    ),
    gauge(
      'sluice_geoip_last_reload_successful',
      '1 if the database of geoip was valid when it was last read, else 0',
      counters.geoDatabases().map(({ database, lastReadSucceeded }) => ({
        labels: { database },
        value: lastReadSucceeded ? 1 : 0,
      })),
      'min',
    ),
  ]
}

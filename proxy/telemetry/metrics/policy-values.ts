import type { MetricValue } from './prometheus.ts'

/**
 * The first policies of a metric are listed from the start with their counts at 0, as Prometheus recommends: `increase()` does not see a
 * rise from nothing to 1. Of the others, only values above 0 are listed, because a scrape blocks requests: with a thousand policies at 0,
 * for 25 ms.
 */
const POLICIES_LISTED_AT_ZERO = 250

/** Whether a value is listed. @param index that of the policy in its metric */
export function isListed(index: number, value: number): boolean {
  return index < POLICIES_LISTED_AT_ZERO || value > 0
}

/** Makes a value for each policy and each value of the label, without those that are not listed. */
export function byPolicy(
  label: string,
  counted: Iterable<readonly [policy: string, counts: Readonly<Record<string, number>>]>,
): MetricValue[] {
  return Array.from(counted).flatMap(([policy, counts], index) =>
    Object.entries(counts)
      .filter(([, value]) => isListed(index, value))
      .map(([labelValue, value]) => ({ labels: { policy, [label]: labelValue }, value })),
  )
}

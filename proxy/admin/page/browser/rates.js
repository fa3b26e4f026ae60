// The counts of the rules: rates of the last seconds, and the last fifteen minutes in steps of ten seconds.

export const STEPS = 90
const RATE_MS = 2_000

/** The counts by rule and step: allowed, refused, shadow. */
const rules = new Map()
/** Steps with known counts, of all rules together. */
const known = new Set()
/** Samples of the last seconds: the time, and the counts at that time. */
let samples = []
let stepMs = 10_000
let step = 0
let uptimeSeconds = 0

export const currentStep = () => step
export const isKnown = (number) => known.has(number)

/** The gateway's own history replaces the values seen by this page; values from before the gateway's start stay. */
export function takeHistory(history) {
  stepMs = history.stepSeconds * 1000
  step = history.last
  samples = []
  for (let number = history.first; number <= history.last; number++) {
    known.add(number)
    for (const rule of rules.values()) rule.steps.delete(number)
  }
  for (const [name, ...counts] of history.rules) {
    const { steps } = ruleNamed(name)
    for (let index = 0; index <= history.last - history.first; index++) {
      const sums = counts.map((each) => each[index] ?? 0)
      if (sums.some((count) => count > 0)) steps.set(history.first + index, sums)
    }
  }
}

/** Rates are differences of counts. Counts that decrease mean that a process was restarted. */
export function takeCounts({ at, status, decisions }) {
  if (status.uptimeSeconds < uptimeSeconds) samples = []
  uptimeSeconds = status.uptimeSeconds
  step = Math.floor(at / stepMs)
  known.add(step)
  // Requests that a process counted or let through while Redis was unavailable count as allowed; requests sent to another route count as
  // refused.
  const counts = new Map(
    decisions.map(([name, { allowed, local, open, refused, unavailable, routed, shadow }]) => [
      name,
      [allowed + local + open, refused + unavailable + routed, shadow],
    ]),
  )
  const before = samples.at(-1)
  samples.push({ at, counts })
  while (samples.length > 2 && at - samples[1].at >= RATE_MS) samples.shift()
  const [oldest] = samples
  const seconds = (at - oldest.at) / 1000
  for (const [name, counted] of counts) {
    const rule = ruleNamed(name)
    rule.rates =
      seconds > 0 ? difference(counted, oldest.counts.get(name)).map((n) => n / seconds) : [0, 0, 0]
    const added = before ? difference(counted, before.counts.get(name)) : [0, 0, 0]
    if (added.some((count) => count > 0)) {
      const sums = rule.steps.get(step) ?? [0, 0, 0]
      rule.steps.set(
        step,
        sums.map((sum, index) => sum + added[index]),
      )
    }
  }
  for (const [name, rule] of rules) if (!counts.has(name)) rule.rates = [0, 0, 0]
  forgetOld()
}

function forgetOld() {
  const oldest = step - STEPS
  for (const number of known) if (number < oldest) known.delete(number)
  for (const [name, { steps, rates }] of rules) {
    for (const number of steps.keys()) if (number < oldest) steps.delete(number)
    if (steps.size === 0 && rates.every((rate) => rate === 0)) rules.delete(name)
  }
}

function difference(counts, before = [0, 0, 0]) {
  return counts.map((count, index) => Math.max(0, count - before[index]))
}

function ruleNamed(name) {
  let rule = rules.get(name)
  if (!rule) rules.set(name, (rule = { rates: [0, 0, 0], steps: new Map() }))
  return rule
}

/** @returns `rates` per second, and `steps`, a map of the non-zero counts */
export function ratesOf(name) {
  return rules.get(name) ?? { rates: [0, 0, 0], steps: new Map() }
}

/** The weight of a rule in the last fifteen minutes: first by requests that were or would have been refused, then by allowed requests. */
export function weightOf(name) {
  let weight = 0
  for (const [allowed, refused, shadow] of ratesOf(name).steps.values())
    weight += (refused + shadow) * 1e6 + allowed
  return weight
}

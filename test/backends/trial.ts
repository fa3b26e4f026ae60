import { askAll, type Response } from './ask.ts'
import type { Random } from './disguises.ts'
import { mutate, plainSpelling } from './mutations.ts'
import { isForwardedAsSent } from './as-sent.ts'
import { toBytes, type Spelling } from './spelling.ts'
import type { Route } from './routes.ts'
import type { Stage } from './stage.ts'
import { handlerReached, isRefusal, rulesCounted } from './verdict.ts'

/** The results of the spellings as counts, and the spellings that bypassed the limit. */
export type Outcome = {
  sent: number
  /** Reached a handler when sent to the backend itself… */
  direct: number
  /** …and were forwarded and counted, refused, or forwarded as something that reaches nothing. */
  directCounted: number
  directRefused: number
  directElsewhere: number
  /** Reached a handler through the gateway. */
  reached: number
  /** Counted, although the spelling reached no handler either way. */
  countedForNothing: number
  /** The gateway gave no complete response. */
  unanswered: number
  /** Reached a handler through the gateway without being counted under its rule. */
  readonly uncounted: Spelling[]
  /** Forwarded differently than sent. Checked if the backend echoes its request. */
  readonly altered: Spelling[]
}

const batch = 500
const maxParents = 4_000
/** A backend may wait for more bytes if it reads the input as an incomplete request. */
const backendSilenceMs = 1_500
const gatewaySilenceMs = 10_000

/**
 * Sends spellings to the backend directly and through the gateway. A spelling that reaches a handler either way is a parent of later ones,
 * so that each leniency of a backend is combined with others.
 */
export async function tryBackend(stage: Stage, random: Random, spellings: number): Promise<Outcome> {
  const outcome: Outcome = {
    sent: 0,
    direct: 0,
    directCounted: 0,
    directRefused: 0,
    directElsewhere: 0,
    reached: 0,
    countedForNothing: 0,
    unanswered: 0,
    uncounted: [],
    altered: [],
  }
  const seen = new Set<string>()
  const parents: Spelling[] = []
  while (outcome.sent < spellings) {
    const wave = generate(random, Math.min(batch, spellings - outcome.sent), stage.routes, parents, seen)
    const [direct, through] = await Promise.all([
      askAll(stage.backendPort, wave, backendSilenceMs),
      askAll(stage.gatewayPort, wave, gatewaySilenceMs),
    ])
    for (const [i, spelling] of wave.entries()) {
      const isParent = judge(outcome, spelling, direct[i], through[i])
      if (isParent && parents.length < maxParents) parents.push(spelling)
    }
    outcome.sent += wave.length
  }
  return outcome
}

function generate(
  random: Random,
  count: number,
  routes: readonly Route[],
  parents: readonly Spelling[],
  seen: Set<string>,
): Spelling[] {
  const made: Spelling[] = []
  while (made.length < count) {
    const chosen = random() < 0.6 ? parents[Math.floor(random() * parents.length)] : undefined
    const parent = chosen ?? plainSpelling(random, routes)
    const spelling = mutate(random, parent)
    const bytes = toBytes(spelling)
    if (seen.has(bytes)) continue
    seen.add(bytes)
    made.push(spelling)
  }
  return made
}

/** @returns whether a handler was reached, unless the gateway refused the request */
function judge(outcome: Outcome, spelling: Spelling, direct?: Response, through?: Response): boolean {
  const handler = direct && handlerReached(direct)
  const behind = through && handlerReached(through)
  const counted = through ? rulesCounted(through) : []
  const refused = through !== undefined && isRefusal(through)
  if (!through || through.status === 0) outcome.unanswered++
  if (through && !isForwardedAsSent(spelling, through)) outcome.altered.push(spelling)
  if (behind !== undefined) {
    outcome.reached++
    if (!counted.includes(behind)) outcome.uncounted.push(spelling)
  }
  if (handler !== undefined) {
    outcome.direct++
    if (counted.includes(handler)) outcome.directCounted++
    else if (refused) outcome.directRefused++
    else outcome.directElsewhere++
  }
  if (handler === undefined && behind === undefined && counted.length > 0) outcome.countedForNothing++
  return !refused && (handler ?? behind) !== undefined
}

import type { Attempt } from './backend.ts'
import { isBrokenForHttp10, isReplayable, judgeAnswer, tell } from './oracle.ts'
import type { Outcome } from './outcome.ts'
import { limitedQuota, type Conversation, type Exchange, type GatewayBounds } from './plan.ts'

export type Problem = { readonly exchange: Exchange; readonly text: string }

/** Returns the faults of a conversation: in each exchange, in their order, and in the end of the connection. */
export function judgeConversation(
  conversation: Conversation,
  outcomes: readonly Outcome[],
  attemptsOf: (id: number) => readonly Attempt[],
  bounds: GatewayBounds,
): Problem[] {
  const { exchanges, protocol, halfCloses } = conversation
  const isHttp2 = protocol === 'h2'
  const problems: Problem[] = []
  const limited = exchanges.filter(({ kind }) => kind === 'limited')
  const limitedBefore = { least: 0, most: 0 }
  const last = exchanges.at(-1)
  /** Whether the conversation ends with a reset, which also discards unread parts of earlier responses. */
  const endsByReset =
    protocol === 'http' && last !== undefined && isBrokenForHttp10(last, attemptsOf(last.id))
  /** Some rules count a request only once its body has arrived, so that requests on other streams may overtake it. */
  const isCountedLater = ({ upload }: Exchange): boolean => isHttp2 && upload !== undefined
  /** Whether an earlier exchange has ended the connection. */
  let isOver = false
  exchanges.forEach((exchange, index) => {
    const outcome = outcomes[index]
    if (!outcome) return
    const attempts = attemptsOf(exchange.id)
    const report = (text: string | undefined): void => {
      if (text !== undefined) problems.push({ exchange, text })
    }
    report(outcome.fault)
    report(attemptsFault(exchange, outcome, attempts))
    if (outcome.ended === 'silent') report(`${tell(outcome)}: hangs`)
    const isUnanswered = outcome.status === undefined && !outcome.complete
    const isLeft = outcome.ended === 'left' || outcome.ended === 'silent'
    const isLostByReset = endsByReset && !outcome.complete && outcome.ended === 'reset'
    if (isLeft || (isLostByReset && exchange !== last)) {
      // Not judged: requests whose response the client did not wait for may have been served or not.
    } else if (isOver) {
      if (!isUnanswered) report(`${tell(outcome)} after the end of the connection`)
      if (attempts.length > 0) report('was served after the end of the connection')
    } else if (outcome.complete || !halfCloses) {
      const isTls = protocol !== 'http'
      const { maxBodyBytes, maxPutBytes, isImpatient } = bounds
      report(
        judgeAnswer({
          exchange,
          outcome,
          attempts,
          maxBodyBytes,
          maxPutBytes,
          isImpatient,
          limitedBefore: isCountedLater(exchange) ? { least: 0, most: limited.length - 1 } : limitedBefore,
          isTls,
          isHttp2,
        }),
      )
      if (!isHttp2) report(closeFault(exchange, outcome))
    }
    if (exchange.kind === 'limited' && !isOver) {
      limitedBefore.most++
      const isCounted = outcome.status !== undefined && outcome.status !== 400
      if (isCounted && !isCountedLater(exchange)) limitedBefore.least++
    }
    if (!isHttp2 && !isLostByReset)
      isOver ||= !outcome.complete || saysClose(outcome) || exchange.version === '1.0'
  })
  const passed = limited.filter(({ id }) => attemptsOf(id).length > 0)
  const one = passed.at(-1)
  if (one && passed.length > limitedQuota)
    problems.push({ exchange: one, text: `${passed.length} requests passed a limit of ${limitedQuota}` })
  return problems
}

function saysClose({ headers }: Outcome): boolean {
  return headers['connection']?.toLowerCase().includes('close') ?? false
}

/** A connection may end with a response only if it must, and the response must announce that. */
function closeFault(exchange: Exchange, outcome: Outcome): string | undefined {
  const { kind, upload, answer, version, asksToClose } = exchange
  if (!outcome.complete || version === '1.0') return undefined
  const must = asksToClose || kind === 'noise' || kind === 'refused-upgrade'
  // The response may have come before the whole request. Node also ends the connection if the client expected a 100 and got none.
  const isUnasked = upload?.expectsContinue === true && upload.bytes === 0
  const may = upload !== undefined && (answer.early || outcome.headers['x-id'] === undefined || isUnasked)
  if (must && !saysClose(outcome)) return 'the connection ends after it, and the response does not say so'
  if (!must && !may && saysClose(outcome)) return `${tell(outcome)} that ends the connection for no reason`
  return undefined
}

/** Returns the fault in what the backend saw of a request. */
function attemptsFault(
  exchange: Exchange,
  outcome: Outcome,
  attempts: readonly Attempt[],
): string | undefined {
  const { upload, answer, cancel } = exchange
  const [first, second, ...more] = attempts
  if (more.length > 0) return `was sent to the backend ${attempts.length} times`
  const mayHaveFailed = first?.onReused === true && (first.tooLate || answer.broken !== undefined)
  if (second && !(isReplayable(exchange) && mayHaveFailed)) return 'was sent to the backend twice'
  const bytes = upload?.bytes ?? 0
  const isCut = cancel?.where === 'request' && outcome.ended === 'left' && bytes > 0
  for (const { whole, uploadBytes } of attempts) {
    if (!whole) continue
    // Node's client ends a stream before it resets it. Without a length, that end is the end of the request.
    const isEnded = isCut && cancel.how === 'stream' && upload?.framing === 'chunked'
    if (isEnded && uploadBytes <= bytes) continue
    if (uploadBytes !== bytes) return `${uploadBytes} bytes of ${bytes} were the whole request to the backend`
    if (isCut) return 'a request that was cut short was completed'
  }
  return undefined
}

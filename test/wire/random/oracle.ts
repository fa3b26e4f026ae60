import type { Attempt } from './backend.ts'
import { answerBytes, brokenAt } from './message-bytes.ts'
import type { Outcome } from './outcome.ts'
import { hasNoContent, isForwarded, limitedQuota, type Exchange } from './plan.ts'
import { tunnelBytes } from './tunnel-bytes.ts'

/** The facts by which an exchange is judged. */
export type Evidence = {
  readonly exchange: Exchange
  readonly outcome: Outcome
  readonly attempts: readonly Attempt[]
  readonly maxBodyBytes: number
  readonly maxPutBytes: number
  readonly isImpatient: boolean
  /** How many earlier exchanges the limit has certainly counted (`least`), and how many it may have counted (`most`). */
  readonly limitedBefore: { readonly least: number; readonly most: number }
  readonly isTls: boolean
  readonly isHttp2: boolean
}

/** Whether a request may be sent to the backend again: it must have no content, and be idempotent. */
export function isReplayable({ method, upload }: Exchange): boolean {
  const hasContent = upload !== undefined && (upload.bytes > 0 || upload.framing === 'chunked')
  return !hasContent && method !== 'POST'
}

/** Returns the fault in the response to a request that the client waited for; undefined if the response is right. */
export function judgeAnswer(evidence: Evidence): string | undefined {
  const { exchange, outcome } = evidence
  const { status } = outcome
  const local = localStatus(evidence)
  if (local !== undefined)
    return status === local ? localFault(evidence) : `${tell(outcome)}, where ${local} is due`
  if (exchange.kind === 'tunnel') return judgeTunnel(evidence)
  if (outcome.headers['x-id'] !== undefined) return judgePassedOn(evidence)
  if (mayLoseHead(evidence)) return undefined
  const allowed = failuresOf(evidence)
  if (status !== undefined && allowed.has(status)) return localFault(evidence)
  return `${tell(outcome)}, where ${[...allowed, 'the backend’s answer'].join(', ')} is due`
}

/** The status if the gateway must answer by itself; otherwise undefined. */
function localStatus(evidence: Evidence): number | undefined {
  const { exchange, outcome, maxBodyBytes, maxPutBytes, limitedBefore } = evidence
  const { kind, method, upload } = exchange
  if (kind === 'options') return 204
  if (kind === 'trace') return 405
  if (kind === 'bad-target' || kind === 'noise') return 400
  // Either rule may refuse the request first.
  if (method === 'PUT' && maxPutBytes > 0 && upload !== undefined && upload.bytes > maxPutBytes)
    return kind === 'limited' && outcome.status === 429 ? 429 : 400
  if (kind === 'limited' && limitedBefore.least >= limitedQuota) return 429
  if (kind === 'limited' && limitedBefore.most >= limitedQuota && outcome.status === 429) return 429
  const isTooLong = maxBodyBytes > 0 && upload !== undefined && upload.bytes > maxBodyBytes
  return isTooLong && upload.framing === 'length' ? 413 : undefined
}

/** Whether a response must end with a reset, as only a reset shows an HTTP/1.0 client that a response is truncated. */
export function isBrokenForHttp10({ version, answer }: Exchange, attempts: readonly Attempt[]): boolean {
  return version === '1.0' && answer.broken !== undefined && attempts.length > 0
}

/** Whether a reset may have discarded even the head, as it discards everything that a slow client has not read yet. */
function mayLoseHead({ exchange, outcome, attempts, isTls }: Evidence): boolean {
  const isReset = outcome.status === undefined && outcome.ended === 'reset'
  return !isTls && isReset && isBrokenForHttp10(exchange, attempts)
}

/** The statuses of the gateway's own error replies that a plan allows. */
function failuresOf({ exchange, attempts, maxBodyBytes, isImpatient, isHttp2 }: Evidence): Set<number> {
  const { answer, upload } = exchange
  const { broken, early } = answer
  const bytes = answerBytes(exchange)
  const hasHead = brokenAt(exchange, bytes) >= bytes.headEnd
  const failures = new Set<number>()
  if (isImpatient || (broken?.how === 'hang' && !hasHead)) failures.add(504)
  if (broken?.how === 'reset' || (broken?.how === 'end' && !hasHead)) failures.add(502)
  // The request was sent over a connection that the backend was just closing, and must not be repeated.
  // HTTP/2 reveals only at the end that content is empty, so empty content may count as content.
  const mayHaveContent = isHttp2 && upload !== undefined
  if ((mayHaveContent || !isReplayable(exchange)) && attempts.every(({ tooLate }) => tooLate))
    failures.add(502)
  // The unread rest of the upload has turned the backend's close into a reset, which can overtake the response.
  if (early && answer.then === 'drop') failures.add(502)
  if (maxBodyBytes > 0 && upload && upload.bytes > maxBodyBytes) failures.add(413)
  return failures
}

function localFault({ exchange, outcome, attempts }: Evidence): string | undefined {
  const { status = 0, text } = outcome
  if (!outcome.complete) return `an incomplete ${status} of the gateway`
  if (attempts.length > 0 && (!isForwarded(exchange) || status === 429))
    return `a ${status}, and the backend has seen it`
  if (exchange.method === 'HEAD' || status === 204) return undefined
  return text.startsWith(`{"code":${status},`) ? undefined : `a ${status} that says ${JSON.stringify(text)}`
}

/** Judges a response of the backend, or a part of one, that has reached the client. */
function judgePassedOn(evidence: Evidence): string | undefined {
  const { exchange, outcome, attempts } = evidence
  const { answer, id } = exchange
  if (outcome.headers['x-id'] !== String(id)) return `the answer to exchange ${outcome.headers['x-id'] ?? ''}`
  if (outcome.status !== answer.status) return `${tell(outcome)}, where the backend said ${answer.status}`
  if (attempts.length === 0) return 'an answer to a request that the backend has not seen'
  const wrongHints = hintsFault(evidence)
  if (wrongHints !== undefined) return wrongHints
  const { least, most, isWhole, mayBeWhole } = lengthsOf(evidence)
  const { bodyBytes } = outcome
  if (outcome.complete) {
    if (!mayBeWhole && !canLookWhole(evidence))
      return `${tell(outcome)}, which looks whole, where the backend broke off`
    if (mayBeWhole && bodyBytes !== most && !canLookWhole(evidence))
      return `${tell(outcome)}, where ${most} are due`
    const length = outcome.headers['content-length']
    const isDeclared = answer.framing === 'length' && answer.status !== 204 && answer.status !== 304
    return isDeclared && length !== String(answer.bytes) ? `a length of ${length ?? 'none'}` : undefined
  }
  if (isWhole) return `${tell(outcome)}, where all ${most} bytes are due`
  if (bodyBytes > most) return `${tell(outcome)}, where the backend sent ${most}`
  return bodyBytes < least
    ? `${tell(outcome)}, where the backend sent ${least} before it broke off`
    : undefined
}

/** How many bytes of the body the client may get. */
function lengthsOf({ exchange, isHttp2, isImpatient }: Evidence) {
  const { answer, version, upload } = exchange
  const { broken } = answer
  const bytes = answerBytes(exchange)
  const end = brokenAt(exchange, bytes)
  const isAll = end === bytes.wire.length
  const endsByClose = answer.framing === 'until-close' && !hasNoContent(exchange) && end >= bytes.headEnd
  const most = bytes.bodyWithin(end)
  const mayBeReset = broken?.how === 'reset' || (answer.early && answer.then === 'drop')
  const isUncertain = isImpatient || (upload !== undefined && answer.early)
  const isWhole = !mayBeReset && !isUncertain && (isAll || (broken?.how === 'end' && endsByClose))
  const mayBeWhole = isAll || (broken?.how === 'end' && endsByClose)
  // Over HTTP/2, a reset overtakes queued data. For HTTP/1.0, only a reset shows that the response is truncated.
  const isExact = broken?.how === 'end' && !isUncertain && !isHttp2 && version === '1.1' && !upload
  return { least: isExact ? most : 0, most, isWhole, mayBeWhole }
}

/** Over TLS, an HTTP/1.0 client in Node cannot detect truncation, as Node does not report whether there was a closing alert. */
function canLookWhole({ exchange, outcome, isTls }: Evidence): boolean {
  return isTls && exchange.version === '1.0' && outcome.headers['content-length'] === undefined
}

function hintsFault({ exchange, outcome, attempts }: Evidence): string | undefined {
  const { answer, version, upload } = exchange
  const continues = outcome.interim.filter((status) => status === 100).length
  if (continues > (upload?.expectsContinue ? 1 : 0)) return `${continues} times 100`
  if (!outcome.complete || attempts.length > 1) return undefined
  const due = version === '1.1' ? answer.interim : []
  const hints = outcome.interim.filter((status) => status !== 100)
  return hints.join() === due.join()
    ? undefined
    : `interim responses ${hints.join()} where ${due.join()} are due`
}

function judgeTunnel({ exchange, outcome }: Evidence): string | undefined {
  const total = tunnelBytes(exchange).length
  if (outcome.status !== 101 || outcome.headers['x-id'] !== String(exchange.id))
    return `${tell(outcome)}, where 101 is due`
  const isCut = exchange.tunnel?.end === 'backend-reset'
  if (outcome.echoed > total || (!isCut && outcome.echoed < total))
    return `${outcome.echoed} bytes came back through the tunnel of ${total}`
  return !isCut && outcome.ended !== 'closed'
    ? `a tunnel that ended as ${outcome.ended ?? 'none'}`
    : undefined
}

export function tell({ status, bodyBytes, complete, ended, resetCode, text }: Outcome): string {
  if (status === undefined)
    return `nothing (${ended ?? 'open'}${resetCode === 0 ? '' : `, code ${resetCode}`})`
  const body = text === '' ? `${bodyBytes} bytes` : JSON.stringify(text.slice(0, 100))
  return `${status} with ${body}${complete ? '' : `, then ${ended ?? 'open'}`}`
}

import { patternFault } from './pattern.ts'
import type { Exchange } from './plan.ts'

/** What a client saw of one exchange. */
export type Outcome = {
  readonly interim: number[]
  status: number | undefined
  /** Names in lower case; several lines of one name are joined. */
  headers: Readonly<Record<string, string>>
  bodyBytes: number
  /** The body of a reply of the gateway itself, if it is short. */
  text: string
  /** The first fault that is wrong under any plan. */
  fault: string | undefined
  complete: boolean
  /** How an incomplete exchange ended: by the client, by the gateway's close or reset, or not at all. */
  ended: 'left' | 'closed' | 'reset' | 'silent' | undefined
  /** The error code with which an HTTP/2 stream was reset. */
  resetCode: number
  /** The number of a tunnel's bytes that were echoed. */
  echoed: number
  /** Whether the gateway has ended the tunnel. */
  tunnelEnded: boolean
  /** Whether all bytes of the request have been written. */
  sent: boolean
}

const maxTextLength = 1_000

export function newOutcome(): Outcome {
  return {
    interim: [],
    status: undefined,
    headers: {},
    bodyBytes: 0,
    text: '',
    fault: undefined,
    complete: false,
    ended: undefined,
    resetCode: 0,
    echoed: 0,
    tunnelEnded: false,
    sent: false,
  }
}

export function noteFault(outcome: Outcome, fault: string | undefined): void {
  outcome.fault ??= fault
}

/** Takes a piece of a response's body. Bodies from the backend have the pattern, others are short. */
export function takeBody(outcome: Outcome, { id }: Exchange, piece: Buffer): void {
  if (outcome.headers['x-id'] !== undefined) noteFault(outcome, patternFault(id, outcome.bodyBytes, piece))
  else if (outcome.text.length < maxTextLength) outcome.text += piece.toString('latin1')
  outcome.bodyBytes += piece.length
}

import type { RecordedRequest } from '../support/http/lenient-requests.ts'
import { valuesOf } from '../support/http/lenient-requests.ts'
import { converse, freshAddress, waysOfSending, type WayOfSending } from '../support/http/raw-client.ts'
import type { RecordingBackend } from '../support/http/recording-backend.ts'
import type { Vector } from './vector.ts'

/** The outcome of a vector, in the form of its verdict. */
export type Outcome = {
  readonly statuses: readonly number[]
  readonly backend: readonly string[]
  readonly unfinished: readonly string[]
  readonly interim: readonly number[]
  /** Bytes that are not part of any response. */
  readonly rest: string
  readonly sees: Readonly<Record<string, readonly string[]>>
  readonly says: string
}

/** Sent after each vector: if the connection stays open, the next response must be the one to this request. */
const probe = 'GET /probe HTTP/1.1\r\nHost: probe.example\r\nConnection: close\r\n\r\n'
const probed = 'GET /probe'

/** Sends a vector from a client address of its own and returns the outcome. */
export async function runVector(
  port: number,
  backend: RecordingBackend,
  vector: Vector,
  way: WayOfSending,
  random: () => number,
): Promise<Outcome> {
  const { bytes, verdict, halfClose, sees = {} } = vector
  const from = freshAddress()
  const isProbed = verdict.statuses.length > 0 && !verdict.statuses.includes(101) && !halfClose
  const conversation = await converse(port, waysOfSending[way](bytes, random), {
    from,
    responses: verdict.statuses.length,
    then: isProbed ? probe : undefined,
    halfClose,
    toHead: bytes.startsWith('HEAD '),
  })
  const responses = conversation.responses.filter(({ body }) => body !== probed)
  const requests = backend.requestsFrom(from).filter((request) => describe(request) !== probed)
  return {
    statuses: responses.map(({ status }) => status),
    backend: requests.filter(({ complete }) => complete).map(describe),
    unfinished: requests
      .filter(({ complete }) => !complete)
      .map(({ method, target }) => `${method} ${target}`),
    interim: conversation.interim,
    rest: conversation.rest,
    sees: Object.fromEntries(
      Object.keys(sees).map((name) => [name, requests[0] ? seenAs(requests[0], name) : []]),
    ),
    says: responses[0]?.head ?? '',
  }
}

function describe({ method, target, body }: RecordedRequest): string {
  return `${method} ${target}${body === '' ? '' : ` ${body}`}`
}

/** The values of a field. For `framed`, one entry for each field that frames the content, of which there must be exactly one. */
function seenAs(request: RecordedRequest, name: string): readonly string[] {
  if (name !== 'framed') return valuesOf(request, name)
  return [
    ...valuesOf(request, 'content-length').map(() => 'once'),
    ...valuesOf(request, 'transfer-encoding').map((coding) => (coding === 'chunked' ? 'once' : coding)),
  ]
}

import { readRegularFile } from '../../../../shared/settings/regular-file.ts'
import { readDecision, type Decision } from './decision.ts'
import { StreamReader, type StreamList } from './stream-reader.ts'

/** The setting `crowdsec`. */
export type CrowdsecSettings = {
  /** The URL of the local API, without `/v1`. */
  readonly url: string
  /** The file with a bouncer's key, read again for each poll, so that it can be replaced. */
  readonly keyFile: string
  readonly everyMs: number
}

/** A response with all decisions takes seconds. */
const TIMEOUT_MS = 60_000

/**
 * Returns the key in the text of a key file. Without the check, the error of `fetch` for an invalid header would show the key.
 *
 * @returns undefined for anything but one line of visible ASCII characters, without spaces
 */
export function keyIn(text: string): string | undefined {
  const key = text.trim()
  return /^[\x21-\x7e]+$/.test(key) ? key : undefined
}

/**
 * Reads the stream of decisions of CrowdSec's local API, `GET /v1/decisions/stream`: bans of addresses and networks only.
 *
 * @param query.startup true requests all active decisions; false, the changes since the last request with this key
 * @param query.userAgent `NAME/VERSION`, as displayed by CrowdSec
 * @param onDecision called with each decision as it arrives, and the list that it is in
 * @throws Error if the key file cannot be read or holds no key, if the response is not a success, invalid or truncated, after 60 seconds,
 *   or when `signal` aborts
 */
export async function readDecisionStream(
  { url, keyFile }: CrowdsecSettings,
  query: { readonly startup: boolean; readonly userAgent: string; readonly signal: AbortSignal },
  onDecision: (list: StreamList, decision: Decision) => void,
): Promise<void> {
  const { startup, userAgent, signal } = query
  const key = keyIn((await readRegularFile(keyFile)).toString())
  if (key === undefined) throw new Error(`${keyFile} needs the API key of a bouncer in one line`)
  const response = await fetch(`${url}/v1/decisions/stream?startup=${startup}&scopes=ip,range`, {
    redirect: 'error',
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    headers: { 'x-api-key': key, 'user-agent': userAgent, accept: 'application/json' },
  })
  if (!response.ok) {
    // Otherwise the connection would wait for the rest of the body.
    await response.body?.cancel().catch(() => undefined)
    const isRefused = response.status === 401 || response.status === 403
    throw new Error(
      isRefused
        ? `the local API refused the key in ${keyFile} (${response.status})`
        : `the local API answered ${response.status}`,
    )
  }
  const reader = new StreamReader((list, sent) => {
    const decision = readDecision(sent)
    if (decision) onDecision(list, decision)
  })
  for await (const piece of (response.body ?? new Blob([]).stream()).pipeThrough(new TextDecoderStream()))
    reader.write(piece)
  reader.end()
}

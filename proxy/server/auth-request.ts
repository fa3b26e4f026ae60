import { errors } from '../../shared/error-replies.ts'
import { writeLocalHead, type LocalReply } from '../http/fields/reply.ts'
import type { ClientRequest } from '../http/message/client-request.ts'
import type { ClientResponse } from '../http/message/client-response.ts'
import type { ClientAddress, Peer } from '../request/addresses/client-address.ts'
import { formOf, readAuthRequest, type AuthRequestForm } from '../request/auth-request.ts'
import type { RejectedHead, RequestHead } from '../request/request-head.ts'
import type { HandlerOptions } from './handler-options.ts'

const nothing = Buffer.alloc(0)
const none: readonly string[] = []

const ambiguous = {
  rejection: 'other',
  reply: errors.badRequest,
  reason:
    'a header that rules read is repeated, or there is another that backends may take for it (X_Api_Key for X-Api-Key)',
} as const

/**
 * Handles an auth request, in which another proxy asks whether to allow a request. The original request is decided about, and answered with
 * 200 in place of being forwarded. The body of the auth request itself is ignored.
 */
export class AuthRequest {
  readonly #options: HandlerOptions
  readonly #peer: Peer
  readonly #request: ClientRequest
  readonly #response: ClientResponse
  readonly #form: AuthRequestForm | undefined
  /** The real status of a refusal that is sent to nginx as 403; undefined otherwise. */
  refusedWith: number | undefined

  constructor(options: HandlerOptions, peer: Peer, request: ClientRequest, response: ClientResponse) {
    this.#options = options
    this.#peer = peer
    this.#request = request
    this.#response = response
    this.#form = formOf(request)
  }

  /** Reads the head of the original request. */
  readHead(client: ClientAddress): RequestHead | RejectedHead {
    // An untrusted peer could use up the limits of any client.
    if (!this.#peer.trusted)
      return this.#unusable({
        reply: errors.forbidden,
        reason: 'the peer that asks is not in TRUSTED_PROXIES',
      })
    if (!this.#form)
      return this.#unusable({
        reply: errors.notFound,
        reason: 'the path is not /forward-auth, /auth-request or /ext-authz/…',
      })
    const read = readAuthRequest(this.#form, this.#request, this.#options)
    if ('reply' in read) return 'rejection' in read ? read : this.#unusable(read)
    // Without a named client, all requests would count for the proxy.
    if (client === this.#peer.client) return this.#unusable(this.#noClient)
    return this.#isAmbiguous ? { ...ambiguous, path: read.target.path } : read
  }

  /**
   * Whether the backend may read another value of a header than the rules do. When Sluice forwards a request, the backend gets a single
   * line of each header that rules read, and no alias. The other proxy forwards all lines that the client has sent.
   */
  get #isAmbiguous(): boolean {
    const met = new Set<string>()
    const { rawHeaders } = this.#request
    for (let i = 0; i < rawHeaders.length; i += 2) {
      const field = this.#options.classifyField(rawHeaders[i] ?? '')
      if (field?.isAlias) return true
      if (field?.role !== 'decisive') continue
      if (met.has(field.name)) return true
      met.add(field.name)
    }
    return false
  }

  get #noClient(): Pick<RejectedHead, 'reply' | 'reason'> {
    const reason = `${this.#options.addresses.header} names no client`
    return { reply: errors.authRequestUnreadable, reason }
  }

  #unusable({ reply, reason }: Pick<RejectedHead, 'reply' | 'reason'>): RejectedHead {
    this.#options.onUnusableAuthRequest(this.#peer.address, reason)
    return { rejection: 'other', reply, reason, path: '' }
  }

  /** Answers 200, so that the proxy forwards the original request. @param limitHeaders name, value, name, value… */
  allow(limitHeaders: readonly string[]): void {
    this.#response.closeIfBodyUnread()
    writeLocalHead(this.#response, 200, ['content-length', '0', ...limitHeaders])
    this.#response.end()
  }

  /**
   * Sends refusals to nginx as 403, which its `error_page` can replace. nginx turns any status except 401 and 403 into 500. The reply has
   * no body, because nginx would close the connection instead of reading it, and soon run out of local ports.
   */
  adaptError(reply: LocalReply): LocalReply {
    if (this.#form !== 'auth-request') return reply
    this.refusedWith = reply.status
    return { status: 403, body: nothing }
  }

  /** The header with the real status for nginx: name and value; empty without a refusal. */
  get statusFields(): readonly string[] {
    return this.refusedWith === undefined ? none : ['x-sluice-status', String(this.refusedWith)]
  }
}

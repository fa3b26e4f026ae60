import { errors } from '../../shared/error-replies.ts'
import { writeLocalHead, type LocalReply } from '../http/fields/reply.ts'
import type { ClientRequest, ClientResponse } from '../http/message/messages.ts'
import { formOf, readAuthRequest, type AuthRequestForm } from '../request/auth-request.ts'
import type { Peer } from '../request/addresses/client-address.ts'
import type { RejectedHead, RequestHead } from '../request/request-head.ts'
import type { HandlerOptions } from './handler-options.ts'
import { RequestSteps } from './request-steps.ts'

const nothing = Buffer.alloc(0)

/**
 * The way of an auth request, in which another proxy asks whether to let a request pass: the same steps, about the
 * original request, and then 200 instead of forwarding it. What the auth request itself carries as its body is ignored.
 */
export class AuthRequest extends RequestSteps {
  readonly forwarding = undefined
  readonly #form: AuthRequestForm | undefined
  /** What is told nginx as 403. */
  #refusedWith: number | undefined

  constructor(options: HandlerOptions, peer: Peer, request: ClientRequest, response: ClientResponse) {
    super(options, peer, request, response)
    this.#form = formOf(request)
  }

  protected override readHead(): RequestHead | RejectedHead {
    // Anybody else could use up the limits of others.
    if (!this.peer.trusted)
      return this.#unusable({
        reply: errors.forbidden,
        why: 'the peer that asks is not in TRUSTED_PROXIES',
      })
    if (!this.#form)
      return this.#unusable({
        reply: errors.notFound,
        why: 'the path is not /forward-auth, /auth-request or /ext-authz/…',
      })
    const read = readAuthRequest(this.#form, this.request, this.options)
    if (!('reply' in read)) return this.#isClientNamed ? read : this.#unusable(this.#noClient)
    return 'reason' in read ? read : this.#unusable(read)
  }

  /** Otherwise the proxy itself would be the one client of all requests. */
  get #isClientNamed(): boolean {
    return this.report.client !== this.peer.client
  }

  get #noClient(): Pick<RejectedHead, 'reply' | 'why'> {
    const why = `${this.options.addresses.header} names no client`
    return { reply: errors.authRequestUnreadable, why }
  }

  #unusable({ reply, why }: Pick<RejectedHead, 'reply' | 'why'>): RejectedHead {
    this.options.onUnusableAuthRequest(this.peer.address, why)
    return { reason: 'other', reply, why, path: '' }
  }

  protected override answerOptions(): void {
    this.pass()
  }

  protected override pass(): void {
    this.response.endAfterResponse()
    writeLocalHead(this.response, 200, ['content-length', '0', ...this.limitHeaders])
    this.response.end()
  }

  /** The settings have no rule that waits for the response. */
  protected override keepReservations(): void {}

  protected override dropBody(): void {}

  protected override get status(): number {
    return this.#refusedWith ?? super.status
  }

  /**
   * To nginx, each refusal is 403, of which it makes what its `error_page` says: it makes 500 of any other status but
   * 401. A body it would not read, but close the connection for it, and soon have no local port left for another one.
   */
  adaptError(reply: LocalReply): LocalReply {
    if (this.#form !== 'auth-request') return reply
    this.#refusedWith = reply.status
    return { status: 403, body: nothing }
  }

  override get localReplyFields(): readonly string[] {
    const fields = super.localReplyFields
    return this.#refusedWith === undefined
      ? fields
      : [...fields, 'x-sluice-status', String(this.#refusedWith)]
  }
}

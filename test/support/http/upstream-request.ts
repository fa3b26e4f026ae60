import { headerListOf } from '../../../proxy/http/message/header-list.ts'
import type { UpstreamRequest } from '../../../proxy/http/upstream/exchange.ts'

/** `GET /` of host `a` without a body; `given` replaces parts of it. */
export function upstreamRequest(given: Partial<UpstreamRequest> = {}): UpstreamRequest {
  return {
    method: 'GET',
    target: '/',
    fields: headerListOf(['host', 'a']),
    hasBody: false,
    contentLength: undefined,
    acceptsTrailers: false,
    upgrade: undefined,
    logsIn: false,
    ...given,
  }
}

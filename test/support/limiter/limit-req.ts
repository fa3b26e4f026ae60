/** What nginx's `limit_req` does without `nodelay`; times are whole milliseconds. */
export type LimitReq = {
  /** The delay of a request, in milliseconds; undefined if it is refused. */
  decide(nowMs: number): number | undefined
}

/**
 * The arithmetic of `ngx_http_limit_req_module.c` (`ngx_http_limit_req_lookup`, `ngx_http_limit_req_account`) for one key. The excess is
 * counted in whole thousandths of a request.
 *
 * @param requestsPerSecond as in `rate=10r/s`
 * @param delay as in `delay=5`: how many requests over the rate are not delayed
 */
export function createLimitReq({
  requestsPerSecond,
  burst,
  delay = 0,
}: {
  readonly requestsPerSecond: number
  readonly burst: number
  readonly delay?: number
}): LimitReq {
  const rate = requestsPerSecond * 1000
  let known: { excess: number; lastMs: number } | undefined
  return {
    decide(nowMs) {
      if (!known) {
        known = { excess: 0, lastMs: nowMs }
        return 0
      }
      const excess = Math.max(0, known.excess - Math.trunc((rate * (nowMs - known.lastMs)) / 1000) + 1000)
      if (excess > burst * 1000) return undefined
      known = { excess, lastMs: nowMs }
      return excess <= delay * 1000 ? 0 : Math.trunc(((excess - delay * 1000) * 1000) / rate)
    },
  }
}

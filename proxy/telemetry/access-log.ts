import type { Log } from '../../shared/log.ts'
import type { ClientListName, DeviceOutcome } from './telemetry.ts'

/** The identity of a request in a log line. */
export type LoggedRequest = {
  readonly requestId: string
  readonly method: string
  /** The path as forwarded, empty where the target was rejected. Never the query: that is where secrets travel. */
  readonly path: string
  readonly clientAddress: string
  /** The hash of the client's key (`h:…`) under the rule that it is over the limit of or banned under; none of an address or a network. */
  readonly counter?: string | undefined
  /** Its hash is of an address, too: not to be logged where addresses are not. */
  readonly isAddressInCounter?: boolean | undefined
  /** Set if a rule with `device` has counted it. */
  readonly device?: DeviceOutcome | undefined
  /** The client's plan under a rule with plans; `none`, or `unknown` for one that the rule does not have. */
  readonly plan?: string | undefined
}

/** The contents of an access line about a finished request. */
export type Access = LoggedRequest & {
  /** 0 where the client left before the response. */
  readonly status: number
  readonly durationMs: number
  /** Name of the route that it took; undefined for `upstream`, and where it was not forwarded. */
  readonly route: string | undefined
  /** The policy that sent the request to another route, as the request was over its limit. */
  readonly routedBy: string | undefined
  /** How long it waited for its turn, as it was over a limit; undefined if it did not. */
  readonly delayedMs: number | undefined
  /** Name of the policy that refused the request. */
  readonly refusedBy: string | undefined
  /** The list that let the request pass a rule, or refused it. */
  readonly list: ClientListName | undefined
  /** The list that refused it: `denyList`, or the file that has the client, as written in the settings. */
  readonly deniedBy: string | undefined
  /** Why a malformed or oversized request was rejected, in words that quote nothing of the request. */
  readonly rejected: string | undefined
  /** Names of the policies in shadow that would have refused it; undefined if there is no such policy. */
  readonly wouldBeRefusedBy: readonly string[] | undefined
}

const PATH_MAX_LENGTH = 1024
/** Longer than any that is served. */
const METHOD_MAX_LENGTH = 32

/** The fields of a line that name its request. */
export function nameRequest(
  { requestId, method, path, clientAddress }: LoggedRequest,
  { logAddresses }: { readonly logAddresses: boolean },
): { requestId: string; method: string; path: string; client: string | undefined } {
  return {
    requestId,
    method: method.slice(0, METHOD_MAX_LENGTH),
    path: path.slice(0, PATH_MAX_LENGTH),
    client: logAddresses ? clientAddress : undefined,
  }
}

/** The client's key for a log line or a span, if it may be there. */
export function loggedCounter(
  { counter, isAddressInCounter }: Pick<LoggedRequest, 'counter' | 'isAddressInCounter'>,
  { logAddresses }: { readonly logAddresses: boolean },
): string | undefined {
  return logAddresses || !isAddressInCounter ? counter : undefined
}

/**
 * Writes one line for each finished request.
 *
 * @param options.logAddresses without it no line names a client
 */
export function createAccessLog(
  log: Log,
  options: { readonly logAddresses: boolean },
): (access: Access) => void {
  return (access) => {
    const {
      status,
      durationMs,
      route,
      routedBy,
      delayedMs,
      refusedBy,
      list,
      deniedBy,
      rejected,
      wouldBeRefusedBy,
      device,
      plan,
    } = access
    const { client, ...named } = nameRequest(access, options)
    log.info(
      {
        ...named,
        status,
        durationMs: Math.round(durationMs * 1000) / 1000,
        route,
        routedBy,
        delayedMs: delayedMs === undefined ? undefined : Math.round(delayedMs * 1000) / 1000,
        refusedBy,
        list,
        deniedBy,
        rejected,
        wouldBeRefusedBy,
        counter: loggedCounter(access, options),
        device,
        plan,
        client,
      },
      'request',
    )
  }
}

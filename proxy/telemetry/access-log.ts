import type { Log } from '../../shared/log.ts'
import type { ClientListName, DeviceOutcome } from './telemetry.ts'

/** The identity of a request in a log line. */
export type LoggedRequest = {
  readonly requestId: string
  readonly method: string
  /** The path as forwarded; empty if the target was rejected. Never includes the query, which often contains secrets. */
  readonly path: string
  readonly clientAddress: string
  /**
   * The hash of the client's key (`h:…`) under the rule whose limit the client exceeds, or that has banned it; undefined if the key is an
   * address or a network.
   */
  readonly counter?: string | undefined
  /** Whether the hash includes an address, and so must not be logged if addresses must not be logged. */
  readonly isAddressInCounter?: boolean | undefined
  /** Set if a rule with `device` has counted the request. */
  readonly device?: DeviceOutcome | undefined
  /** The client's plan under a rule with plans; `none`, or `unknown` for a plan that the rule does not have. */
  readonly plan?: string | undefined
}

/** The contents of an access log line about a finished request. */
export type Access = LoggedRequest & {
  /** 0 if the client disconnected before the response. */
  readonly status: number
  /** The response was cut off after its head: by the backend, the client, a timeout or the end of the gateway. */
  readonly isIncomplete: boolean
  readonly durationMs: number
  /** Name of the route that the request took; undefined for `upstream`, and if the request was not forwarded. */
  readonly route: string | undefined
  /** The policy that sent the request to another route, because the request was over its limit. */
  readonly routedBy: string | undefined
  /** How long the request waited for its turn, because it was over a limit; undefined if it did not wait. */
  readonly delayedMs: number | undefined
  /** Name of the policy that refused the request. */
  readonly refusedBy: string | undefined
  /** The list that let the request pass a rule, or refused it. */
  readonly list: ClientListName | undefined
  /** The list that refused the request: `denyList`, the file that contains the client, as written in the settings, or `crowdsec`. */
  readonly deniedBy: string | undefined
  /** Why a malformed or oversized request was rejected, in words that quote nothing of the request. */
  readonly rejected: string | undefined
  /** Names of the shadow policies that would have refused the request; undefined if there is no such policy. */
  readonly wouldBeRefusedBy: readonly string[] | undefined
}

const PATH_MAX_LENGTH = 1024
/** Maximum length of a method. No longer method is served. */
const METHOD_MAX_LENGTH = 32

/** Returns the fields of a line that identify its request. */
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

/** Returns the client's key for a log line or a span, if it may be included. */
export function loggedCounter(
  { counter, isAddressInCounter }: Pick<LoggedRequest, 'counter' | 'isAddressInCounter'>,
  { logAddresses }: { readonly logAddresses: boolean },
): string | undefined {
  return logAddresses || !isAddressInCounter ? counter : undefined
}

/**
 * Writes one line for each finished request.
 *
 * @param options.logAddresses if false, no line names a client
 */
export function createAccessLog(
  log: Log,
  options: { readonly logAddresses: boolean },
): (access: Access) => void {
  return (access) => {
    const {
      status,
      isIncomplete,
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
        incomplete: isIncomplete || undefined,
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

import { Resolver } from 'node:dns/promises'
import { setTimeout as wait } from 'node:timers/promises'
import { NameError, saysNoSuchName, saysServerFailed } from './name-error.ts'
import { candidatesOf, type ResolverSettings } from './resolver-settings.ts'

/** Addresses from DNS, with their TTL. */
export type DnsAnswer = { readonly addresses: readonly string[]; readonly ttlSeconds: number }

/** Asks DNS for one absolute name and one family. Rejects with the codes of c-ares. */
export type AskDns = (
  name: string,
  family: 4 | 6,
) => Promise<readonly { readonly address: string; readonly ttl: number }[]>

/**
 * How long IPv4 addresses wait for IPv6 addresses, because some name servers do not answer AAAA queries. RFC 8305 section 3 waits 50 ms on
 * each lookup; here, a late answer would move a backend back and forth. IPv6 addresses always wait for IPv4 addresses: alone they would be
 * the only known addresses of the backend, perhaps on a machine without IPv6.
 */
const OTHER_FAMILY_MS = 1_000

/**
 * Queries the system's name servers through c-ares, which uses a socket and no libuv threads. Lookups by `getaddrinfo` share two of these
 * threads. A new client is created when `/etc/resolv.conf` changes.
 *
 * @param servers `ADDRESS:PORT`, in place of the system's
 */
export function createDnsClient(settings: ResolverSettings, servers?: readonly string[]): AskDns {
  const first = createResolver(settings, servers)
  // As Node configures it, c-ares goes on to the next server only if one does not answer, and not if one answers that it has failed.
  const [, ...others] = first.getServers()
  const resolvers = [first, ...others.map((_, i) => createResolver(settings, others.slice(i)))]
  return async (name, family) => {
    let failure: unknown
    for (const resolver of resolvers) {
      try {
        return await (family === 4
          ? resolver.resolve4(name, { ttl: true })
          : resolver.resolve6(name, { ttl: true }))
      } catch (error) {
        // Only addresses of a further server count. That it does not know the name may be because it is a public one.
        if (failure === undefined && !saysServerFailed(error)) throw error
        failure ??= error
      }
    }
    throw failure
  }
}

function createResolver(
  { timeoutMs, attempts }: ResolverSettings,
  servers: readonly string[] | undefined,
): Resolver {
  const resolver = new Resolver({ timeout: timeoutMs, tries: attempts })
  if (servers) resolver.setServers(servers)
  return resolver
}

/**
 * Queries DNS for a name as libc does: with the search domains, and both families at once.
 *
 * @throws NameError
 */
export async function queryDns(name: string, settings: ResolverSettings, ask: AskDns): Promise<DnsAnswer> {
  let failure: unknown
  let isSilent = false
  for (const candidate of candidatesOf(name, settings)) {
    // A server that does not answer for one domain does not answer for others either. The name as given is queried in any case.
    if (isSilent && candidate !== name) continue
    const answer = await askBoth(candidate, ask)
    if ('addresses' in answer) return answer
    if (saysNoSuchName(answer.error)) continue
    failure ??= answer.error
    isSilent ||= !saysServerFailed(answer.error)
  }
  throw new NameError(failure === undefined ? 'ENOTFOUND' : 'EAI_AGAIN', name, failure)
}

type Asked = DnsAnswer | { readonly error: unknown }

async function askBoth(name: string, ask: AskDns): Promise<Asked> {
  const six = settle(ask(name, 6))
  // Every name server answers A queries. If the reply is late, it was lost on the way, and c-ares asks again.
  const ofIpv4 = await settle(ask(name, 4))
  // Some name servers deny that a name exists if it has no IPv6 address, so the other answer counts (RFC 4074 section 4.2).
  const ofIpv6 =
    'error' in ofIpv4 ? await six : await Promise.race([six, wait(OTHER_FAMILY_MS, ofIpv4, { ref: false })])
  const others = [ofIpv6, ofIpv4]
  const answers = others.flatMap((other) => ('addresses' in other ? [other] : []))
  if (answers.length > 0) {
    return {
      addresses: [...new Set(answers.flatMap(({ addresses }) => addresses))],
      ttlSeconds: Math.min(...answers.map(({ ttlSeconds }) => ttlSeconds)),
    }
  }
  const errors = others.flatMap((other) => ('error' in other ? [other.error] : []))
  return { error: errors.find((error) => !saysNoSuchName(error)) ?? errors[0] }
}

async function settle(asking: ReturnType<AskDns>): Promise<Asked> {
  try {
    const records = await asking
    if (records.length === 0) return { error: Object.assign(new Error('no data'), { code: 'ENODATA' }) }
    return {
      addresses: records.map(({ address }) => address),
      ttlSeconds: Math.min(...records.map(({ ttl }) => ttl)),
    }
  } catch (error) {
    return { error }
  }
}

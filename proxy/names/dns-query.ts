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
 * How long IPv4 addresses wait for those of IPv6, as some name servers do not answer questions about these. RFC 8305 section 3 waits 50
 * ms, each time anew; here an answer that comes late would move a backend back and forth. IPv6 addresses always wait for the others:
 * alone they would be the backend's only known ones, perhaps on a machine without IPv6.
 */
const OTHER_FAMILY_MS = 1_000

/**
 * Asks the system's name servers by c-ares, which uses a socket and no threads of libuv, where lookups by `getaddrinfo` share
 * two. Recreated when `/etc/resolv.conf` has changed.
 */
export function createDnsClient({ timeoutMs, attempts }: ResolverSettings): AskDns {
  const resolver = new Resolver({ timeout: timeoutMs, tries: attempts })
  return (name, family) =>
    family === 4 ? resolver.resolve4(name, { ttl: true }) : resolver.resolve6(name, { ttl: true })
}

/**
 * Asks DNS for a name as libc does: with the search domains, both families at a time.
 *
 * @throws NameError
 */
export async function queryDns(name: string, settings: ResolverSettings, ask: AskDns): Promise<DnsAnswer> {
  let failure: unknown
  let isSilent = false
  for (const candidate of candidatesOf(name, settings)) {
    // A silent server is silent about other domains too. As it is, the name is asked for in any case.
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
  // Every name server answers it: a late reply was lost on the way, and c-ares asks again.
  const ofIpv4 = await settle(ask(name, 4))
  // There are name servers that deny a name that has no IPv6 address: the other answer counts (RFC 4074 section 4.2).
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

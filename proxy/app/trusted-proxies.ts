import { lookup } from 'node:dns'
import type { Log } from '../../shared/log.ts'
import type { GatewaySettings } from '../config/settings.ts'
import { createTrustedHosts, type TrustedHosts } from '../request/addresses/trusted-hosts.ts'
import { sortTrustedProxies } from '../request/addresses/trusted-proxies.ts'
import { createAddressReader, type AddressReader } from '../request/client-address.ts'

/** The proxies that are believed: the networks, and the hosts where some are named. */
export function composeTrustedProxies(
  settings: GatewaySettings,
  log: Log,
  now: () => number,
): { readonly ranges: readonly string[]; readonly hosts: TrustedHosts | undefined } {
  const { ranges, hosts } = sortTrustedProxies(settings.trustedProxies)
  return {
    ranges,
    hosts: hosts.length === 0 ? undefined : createTrustedHosts({ hosts, lookup: addressesOf, now, log }),
  }
}

/** @param proxies those that are believed: networks, and the addresses of hosts */
export function composeAddresses(
  { clientAddressHeader, ipv6Prefix }: Pick<GatewaySettings, 'clientAddressHeader' | 'ipv6Prefix'>,
  { ranges, hosts }: { readonly ranges: readonly string[]; readonly hosts?: TrustedHosts | undefined },
): AddressReader {
  return createAddressReader(ranges, { header: clientAddressHeader, ipv6Prefix, hosts })
}

/** As the system resolves names: `/etc/hosts`, a container engine's name server, search domains. */
function addressesOf(host: string): Promise<string[]> {
  return new Promise((resolve, reject) => {
    lookup(host, { all: true }, (error, found) =>
      error ? reject(error) : resolve(found.map(({ address }) => address)),
    )
  })
}

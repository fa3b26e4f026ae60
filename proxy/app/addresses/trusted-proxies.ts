import type { Log } from '../../../shared/log.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import type { Names } from '../../names/names.ts'
import { TrustedHosts } from '../../request/addresses/trusted-hosts.ts'
import { sortTrustedProxies } from '../../request/addresses/trusted-proxies.ts'
import { createAddressReader, type AddressReader } from '../../request/addresses/client-address.ts'

/** Composes the trusted proxies: networks, and hosts if the settings name any. */
export function composeTrustedProxies(
  settings: GatewaySettings,
  { names, log, now }: { readonly names: Names; readonly log: Log; readonly now: () => number },
): { readonly ranges: readonly string[]; readonly hosts: TrustedHosts | undefined } {
  const { ranges, hosts } = sortTrustedProxies(settings.trustedProxies)
  const lookup = async (host: string): Promise<readonly string[]> => (await names.resolve(host)).addresses
  return {
    ranges,
    hosts: hosts.length === 0 ? undefined : new TrustedHosts({ hosts, lookup, now, log }),
  }
}

/** @param proxies the trusted proxies: networks, and the addresses of hosts */
export function composeAddresses(
  { clientAddressHeader, ipv6Prefix }: Pick<GatewaySettings, 'clientAddressHeader' | 'ipv6Prefix'>,
  { ranges, hosts }: { readonly ranges: readonly string[]; readonly hosts?: TrustedHosts | undefined },
): AddressReader {
  return createAddressReader(ranges, { header: clientAddressHeader, ipv6Prefix, hosts })
}

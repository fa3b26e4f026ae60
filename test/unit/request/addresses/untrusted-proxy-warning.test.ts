import { expect, test, vi } from 'vitest'
import { createUntrustedProxyWarning } from '../../../../proxy/request/addresses/untrusted-proxy-warning.ts'
import { createLog } from '../../../../shared/log.ts'

/** The warnings after 100 requests with an ignored header, from these peers in turn. */
function warningsOf(peers: readonly string[], logAddresses = true): unknown[] {
  const log = createLog('gateway', 'silent')
  const warn = vi.spyOn(log, 'warn')
  const onUntrusted = createUntrustedProxyWarning(log, {
    logAddresses,
    clientAddressHeader: 'x-forwarded-for',
  })
  for (let sent = 0; sent < 100; sent++) onUntrusted(peers[sent % peers.length] ?? '')
  return warn.mock.calls
}

test('Cloudflare in front, from any of its addresses, is a warning with the two settings for it', () => {
  const peers = Array.from({ length: 100 }, (_, last) => `172.64.3.${last}`)
  expect(warningsOf([...peers, '2606:4700::1'], false)).toEqual([
    [
      { peer: undefined },
      'X-Forwarded-For from an untrusted address of Cloudflare is ignored, so all clients behind it share limits: ' +
        'if your site is behind Cloudflare, set TRUSTED_PROXIES=cloudflare and CLIENT_ADDRESS_HEADER=CF-Connecting-IP',
    ],
  ])
})

test('a peer with another public address is no warning', () => {
  expect(warningsOf(['203.0.113.9'])).toEqual([])
})

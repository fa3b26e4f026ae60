import { expect, test } from 'vitest'
import { nearestWord } from '../../../shared/settings/did-you-mean.ts'

test.each([
  ['trustedproxies', 'trusted_proxies'],
  ['trusted-proxies-the', 'trusted_proxies'],
  ['trusted-proxies-them', undefined],
  ['trusted-prox', undefined],
  ['trustedproxi', 'trusted_proxies'],
  ['trusted-porxies', 'trusted_proxies'],
])('the known word near %s is %s', (word, near) => {
  expect(nearestWord(word, ['port', 'trusted_proxies', 'upstream_url'])).toBe(near)
})

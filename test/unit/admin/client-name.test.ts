import { expect, test } from 'vitest'
import { chargesOfClient } from '../../../proxy/admin/api/client-name.ts'
import { readClient } from '../../../proxy/cli/operate/client-argument.ts'
import { partitionParts } from '../../../proxy/config/rules/partition-key.ts'
import { partName, type SinglePart } from '../../../proxy/policy/partition.ts'
import { createAddressReader } from '../../../proxy/request/addresses/client-address.ts'
import { makePolicy } from '../../support/limiter/charges.ts'

/** A sample value for each kind of part. */
const values: Readonly<Record<SinglePart['kind'], { readonly part: SinglePart; readonly value: string }>> = {
  ip: { part: { kind: 'ip' }, value: '192.0.2.7' },
  network: { part: { kind: 'network', ipv4: 24, ipv6: 48 }, value: '192.0.2.0/24' },
  country: { part: { kind: 'country' }, value: 'DE' },
  asn: { part: { kind: 'asn' }, value: 'AS64496' },
  host: { part: { kind: 'host' }, value: 'app.example.com' },
  global: { part: { kind: 'global' }, value: '' },
  header: { part: { kind: 'header', name: 'x-api-key' }, value: 'a' },
  cookie: { part: { kind: 'cookie', name: 'sid' }, value: 'a' },
  query: { part: { kind: 'query', name: 'user' }, value: 'a' },
  jwt: { part: { kind: 'jwt', name: 'sub' }, value: 'a' },
  body: { part: { kind: 'body', name: 'email', path: ['email'] }, value: 'a@example.com' },
  path: { part: { kind: 'path', name: 'id', patterns: ['GET /:id'] }, value: '7' },
}

test.each(Object.entries(values))('operators can name a client by %s', async (_, { part, value }) => {
  const client = await readClient([`${partName(part)}=${value}`])
  const policy = makePolicy('a', 1, 1000, { partition: [part] })
  expect(chargesOfClient({ client, policy: policy.name }, [policy], createAddressReader([]))).toMatchObject([
    { policy },
  ])
})

test.each(Object.entries(values))('rules can have a key by %s', (_, { part }) => {
  expect(partitionParts.parse(partName(part))).toMatchObject([{ kind: part.kind }])
})

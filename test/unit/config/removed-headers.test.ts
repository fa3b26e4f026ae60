import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { clientAddressHeader } from '../../../proxy/config/clients/client-address-header.ts'
import { addReplyHeaderIssues } from '../../../proxy/config/replies/reply-headers.ts'
import { requestHeaders } from '../../../proxy/config/routes/request-headers.ts'
import { limits } from '../../../proxy/config/rules/limits.ts'
import { classifyResponseField, createRequestClassifier } from '../../../proxy/http/fields/header-roles.ts'
import {
  answeredHere,
  forwardProxyHeaders,
  hopByHop,
  http1Only,
  neverForwarded,
  writtenByGateway,
} from '../../../proxy/http/fields/removed-headers.ts'
import { readRequestFields } from '../../../proxy/http/http2/request-fields.ts'

// One list names the headers that are not passed on. This test asks every user of the list about each header.

const isRuleWith = (fields: object): boolean =>
  limits.safeParse([{ name: 'r', match: 'GET /', requests: 1, window: '1m', ...fields }]).success
const isSet = (name: string): boolean => requestHeaders.safeParse({ [name]: 'a' }).success
const replyHeaders = z.record(z.string(), z.string()).superRefine(addReplyHeaderIssues)
const isAdded = (name: string): boolean => replyHeaders.safeParse({ [name]: 'a' }).success
const namesClients = (name: string): boolean => clientAddressHeader.schema.safeParse(name).success

test('a header that is passed on may be counted by, read for the cost and set', () => {
  expect(isRuleWith({ key: 'header:x-api-key' })).toBe(true)
  expect(isRuleWith({ cost: { settle: 'header:x-cost' } })).toBe(true)
  expect([isSet('x-team'), isAdded('x-team'), namesClients('x-client-ip')]).toEqual([true, true, true])
})

describe.each([...hopByHop, ...forwardProxyHeaders])('%s, of one connection,', (name) => {
  test('a header of one connection is forwarded in no request and no response, whatever decisions rest on', () => {
    for (const deciding of [[], [name]])
      expect(createRequestClassifier(deciding, true)(name)?.role).not.toMatch(/^(end-to-end|decisive)$/)
    expect(classifyResponseField(name)?.role).not.toBe('end-to-end')
  })

  test('a header of one connection can neither be counted by, nor read for the cost, nor set, nor name clients', () => {
    expect(isRuleWith({ key: `header:${name}` })).toBe(false)
    expect(isRuleWith({ cost: { settle: `header:${name}` } })).toBe(false)
    expect([isSet(name), namesClients(name)]).toEqual([false, false])
  })
})

test.each(hopByHop)('%s cannot be added to a reply of the gateway', (name) => {
  expect(isAdded(name)).toBe(false)
})

test.each([...neverForwarded, ...writtenByGateway, answeredHere])(
  '%s does not reach the backend as a client has sent it, and cannot be set',
  (name) => {
    expect(createRequestClassifier([], true)(name)?.role).not.toBe('end-to-end')
    expect(isSet(name)).toBe(false)
  },
)

test.each([...writtenByGateway, answeredHere])('%s cannot be counted by', (name) => {
  expect(isRuleWith({ key: `header:${name}` })).toBe(false)
})

test.each([...http1Only])('%s makes a request over HTTP/2 malformed, and is hop-by-hop', (name) => {
  const request = [':method', 'GET', ':path', '/', ':scheme', 'http', ':authority', 'a']
  expect(readRequestFields(request)).toBeDefined()
  expect(readRequestFields([...request, name, 'a'])).toBeUndefined()
  expect(hopByHop).toContain(name)
})

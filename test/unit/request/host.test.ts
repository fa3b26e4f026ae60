import { expect, test } from 'vitest'
import type { ClientRequest } from '../../../proxy/http/message/client-request.ts'
import { readHost } from '../../../proxy/request/request-head.ts'

function hostOf(version: string, ...rawHeaders: string[]): string | undefined {
  const request = { rawHeaders, httpVersion: version, httpVersionMajor: Number(version[0]) }
  return readHost(request as unknown as ClientRequest, undefined, 'fallback')
}

const names = ['a.example', 'A.Example', '[::1]', '[::AB]', '192.0.2.1']
const ports = ['', ':', ':80', ':443', ':8080']

test(':authority and Host may differ by letter case and by the port of the scheme', () => {
  for (const name of names)
    for (const one of ports)
      for (const other of ports) {
        const isSame = one === other || (one !== ':8080' && other !== ':8080')
        const sent = [':authority', name + one, 'host', name.toUpperCase() + other]
        // The first one counts, and is forwarded.
        const expected = one === ':' ? name : name + one
        expect(hostOf('2.0', ...sent), sent.join(' ')).toBe(isSame ? expected : undefined)
        // Over HTTP/1.1 a second Host header is refused, even if both are equal.
        expect(hostOf('1.1', 'host', name + one, 'host', name + one)).toBeUndefined()
      }
})

test.each([
  ['another name', 'a.example', 'b.example'],
  ['a part of it', 'a.example', 'a.exampl'],
  ['a name and nothing', 'a.example', ''],
  ['a port in the middle', 'a:80.example', 'a.example'],
])(':authority and Host that name %s are refused', (_, authority, host) => {
  expect(hostOf('2.0', ':authority', authority, 'host', host)).toBeUndefined()
  expect(hostOf('2.0', 'host', authority, 'host', host)).toBeUndefined()
})

import { PassThrough } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readProxyHeader } from '../../../../proxy/http/connection/proxy-protocol.ts'

const signature = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')

/** A version 2 header: version and command, family and transport, addresses and extensions. */
function version2(command: number, family: number, rest: Buffer, length = rest.length): Buffer {
  const fixed = Buffer.from([command, family, length >> 8, length & 255])
  return Buffer.concat([signature, fixed, rest])
}

const ports = [0x30, 0x39, 0x01, 0xbb]
const ipv4 = Buffer.from([203, 0, 113, 7, 192, 0, 2, 1, ...ports])
const ipv6 = Buffer.concat([
  Buffer.from('20010db8000000000000000000000007', 'hex'),
  Buffer.from('20010db8000000000000000000000001', 'hex'),
  Buffer.from(ports),
])
const unix = Buffer.alloc(216, 'x')
/** PP2_TYPE_NOOP with three bytes, and an empty PP2_TYPE_UNIQUE_ID. */
const extensions = Buffer.from([0x04, 0, 3, 1, 2, 3, 0x05, 0, 0])

const sound: [string, Buffer, string | undefined][] = [
  ['version 1, IPv4', Buffer.from('PROXY TCP4 203.0.113.7 192.0.2.1 12345 443\r\n'), '203.0.113.7'],
  ['version 1, IPv6', Buffer.from('PROXY TCP6 2001:db8::7 2001:db8::1 12345 443\r\n'), '2001:db8::7'],
  ['version 1, mapped', Buffer.from('PROXY TCP6 ::ffff:1.2.3.4 ::1 1 2\r\n'), '::ffff:1.2.3.4'],
  ['version 1, unknown', Buffer.from('PROXY UNKNOWN\r\n'), undefined],
  ['version 1, unknown, with more', Buffer.from('PROXY UNKNOWN ffff:f:: ::1 65535 1\r\n'), undefined],
  ['version 1, ports 0 and 65535', Buffer.from('PROXY TCP4 1.2.3.4 5.6.7.8 0 65535\r\n'), '1.2.3.4'],
  ['version 1, 107 bytes', Buffer.from(`PROXY UNKNOWN ${'x'.repeat(91)}\r\n`), undefined],
  ['version 2, IPv4', version2(0x21, 0x11, ipv4), '203.0.113.7'],
  ['version 2, IPv6', version2(0x21, 0x21, ipv6), '2001:db8:0:0:0:0:0:7'],
  ['version 2, extensions', version2(0x21, 0x11, Buffer.concat([ipv4, extensions])), '203.0.113.7'],
  ['version 2, local', version2(0x20, 0x00, Buffer.alloc(0)), undefined],
  ['version 2, local with an address', version2(0x20, 0x11, ipv4), undefined],
  ['version 2, local with extensions', version2(0x20, 0x00, extensions), undefined],
  ['version 2, unspecified', version2(0x21, 0x00, Buffer.alloc(0)), undefined],
  ['version 2, unspecified with more', version2(0x21, 0x00, extensions), undefined],
  ['version 2, a Unix socket', version2(0x21, 0x31, unix), undefined],
]

const broken: [string, Buffer][] = [
  ['a request', Buffer.from('GET / HTTP/1.1\r\n')],
  ['a handshake of TLS', Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00])],
  ['another first byte', Buffer.from('X')],
  ['version 1 in lower case', Buffer.from('proxy ')],
  ['version 1 without an end', Buffer.from(`PROXY TCP4 ${'1'.repeat(96)}`)],
  ['version 1, 108 bytes', Buffer.from(`PROXY UNKNOWN ${'x'.repeat(92)}\r\n`)],
  ['version 1, another family', Buffer.from('PROXY UDP4 1.2.3.4 5.6.7.8 1 2\r\n')],
  ['version 1, IPv6 as IPv4', Buffer.from('PROXY TCP4 ::1 ::1 1 2\r\n')],
  ['version 1, IPv4 as IPv6', Buffer.from('PROXY TCP6 1.2.3.4 5.6.7.8 1 2\r\n')],
  ['version 1, a zone', Buffer.from('PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n')],
  ['version 1, no address', Buffer.from('PROXY TCP4 1.2.3 5.6.7.8 1 2\r\n')],
  ['version 1, a leading zero', Buffer.from('PROXY TCP4 01.2.3.4 5.6.7.8 1 2\r\n')],
  ['version 1, the other address broken', Buffer.from('PROXY TCP4 1.2.3.4 x 1 2\r\n')],
  ['version 1, a port too high', Buffer.from('PROXY TCP4 1.2.3.4 5.6.7.8 1 65536\r\n')],
  ['version 1, a port with a zero', Buffer.from('PROXY TCP4 1.2.3.4 5.6.7.8 01 2\r\n')],
  ['version 1, a port missing', Buffer.from('PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n')],
  ['version 1, too much', Buffer.from('PROXY TCP4 1.2.3.4 5.6.7.8 1 2 3\r\n')],
  ['version 1, two spaces', Buffer.from('PROXY TCP4  1.2.3.4 5.6.7.8 1 2\r\n')],
  ['version 1, a bare line feed', Buffer.from('PROXY TCP4 1.2.3.4 5.6.7.8 1 2\nx\r\n')],
  ['version 2 with another signature', Buffer.from('\r\n\r\n\0\r\nQUIT\r', 'latin1')],
  ['version 3', version2(0x31, 0x11, ipv4)],
  ['version 2, another command', version2(0x22, 0x11, ipv4)],
  ['version 2, datagrams', version2(0x21, 0x12, ipv4)],
  ['version 2, another family', version2(0x21, 0x41, ipv4)],
  ['version 2, too short for IPv4', version2(0x21, 0x11, ipv4.subarray(1))],
  ['version 2, too short for IPv6', version2(0x21, 0x21, ipv4)],
  ['version 2, more than 16 KiB', version2(0x21, 0x11, ipv4, 16_385)],
]

const request = Buffer.from('GET / HTTP/1.1\r\n')

/** A connection that waits for a header. */
function awaitHeader(): { connection: PassThrough; header: Promise<string | undefined> } {
  const connection = new PassThrough()
  return { connection, header: readProxyHeader(connection, 60_000) }
}

function unread(connection: PassThrough): Buffer {
  const bytes: unknown = connection.read()
  return Buffer.isBuffer(bytes) ? bytes : Buffer.alloc(0)
}

describe('a header of the PROXY protocol', () => {
  test.each(sound)('%s', async (_, bytes, address) => {
    const { connection, header } = awaitHeader()
    connection.write(bytes)
    expect(await header).toBe(address)
    expect(connection.readableLength).toBe(0)
  })

  test.each(sound)('%s, with a request after it', async (_, bytes, address) => {
    const { connection, header } = awaitHeader()
    connection.write(Buffer.concat([bytes, request]))
    expect(await header).toBe(address)
    expect(unread(connection)).toEqual(request)
  })

  test.each(sound)('%s, cut at every byte: more is waited for', async (_, bytes, address) => {
    const { connection, header } = awaitHeader()
    let isRead = false
    void header.then(() => (isRead = true))
    for (const byte of bytes) {
      expect(isRead).toBe(false)
      connection.write(Buffer.from([byte]))
      await turn()
    }
    expect(await header).toBe(address)
    connection.write(request)
    expect(unread(connection)).toEqual(request)
  })

  test.each(broken)('%s is not a PROXY header', async (_, bytes) => {
    const { connection, header } = awaitHeader()
    connection.write(bytes)
    await expect(header).rejects.toMatchObject({ name: 'ProxyHeaderError' })
  })

  test('no bytes make it throw anything else or take more than there is', async () => {
    const begun = fc
      .tuple(fc.constantFrom(signature, Buffer.from('PROXY '), Buffer.alloc(0)), fc.uint8Array())
      .map(([begin, rest]) => Buffer.concat([begin, rest]))
    await fc.assert(
      fc.asyncProperty(begun, async (bytes) => {
        const { connection, header } = awaitHeader()
        connection.write(bytes)
        // A complete header has been read by then; otherwise the connection closes before the header.
        setImmediate(() => setImmediate(() => connection.destroy()))
        try {
          await header
          const rest = unread(connection)
          expect(rest).toEqual(bytes.subarray(bytes.length - rest.length))
        } catch (error) {
          expect(error).toMatchObject({ name: 'ProxyHeaderError' })
        }
      }),
    )
  })
})

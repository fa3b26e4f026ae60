import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parseAddress, parseAddressRange } from '../../../../proxy/request/addresses/ip-address.ts'
import { readListInThread } from '../../../../proxy/request/addresses/lists/read-in-thread.ts'
import { readList } from '../../../../proxy/request/addresses/lists/read-list.ts'
import { RangeBuilder } from '../../../../proxy/request/addresses/lists/range-builder.ts'
import { buffersOf, SortedRanges } from '../../../../proxy/request/addresses/lists/sorted-ranges.ts'
import { doAtOnce } from '../../../../shared/steps.ts'
import { makeTemporaryDirectory } from '../../../support/run/temporary-directory.ts'

function write(content: string | Buffer): string {
  const path = join(makeTemporaryDirectory(), 'list.txt')
  writeFileSync(path, content)
  return path
}

/** Returns the addresses that are on the list with this content. */
function listed(content: string | Buffer, addresses: readonly string[]): string[] {
  const read = readList(write(content))
  if (!('data' in read)) throw new Error(JSON.stringify(read))
  const ranges = new SortedRanges(read.data)
  return addresses.filter((text) => ranges.has(parseAddress(text) ?? []))
}

test('an entry is an address or a CIDR, with bits after its prefix ignored', () => {
  const on = ['192.0.2.1', '10.0.0.0', '10.255.255.255', '2001:db8::5', '2001:db8:1::', '::ffff:192.0.2.1']
  const off = ['192.0.2.2', '9.255.255.255', '11.0.0.0', '2001:db8::6', '2001:db8:2::', '::192.0.2.1']
  const content = '192.0.2.1\n10.20.30.40/8\n2001:db8::5\n2001:db8:1:2:3:4:5:6/48\n'
  expect(listed(content, [...on, ...off])).toEqual(on)
})

test.each([
  ['LF', '192.0.2.1\n192.0.2.2\n'],
  ['CRLF', '192.0.2.1\r\n192.0.2.2\r\n'],
  ['no end of the last line', '192.0.2.1\n192.0.2.2'],
  ['a byte order mark', '\u{feff}192.0.2.1\n192.0.2.2\n'],
  ['blank lines, and blanks around entries', '\n  192.0.2.1\t\n \t \n\r\n192.0.2.2 \r\n\n'],
  ['comments of #', '# two\n192.0.2.1 # one\n#192.0.2.9\n192.0.2.2#another\n'],
  ['comments of ;, as Spamhaus writes them', '; DROP list\n192.0.2.1 ; SBL1\n192.0.2.2;SBL2 # x\n'],
  ['a comment longer than a piece that is read', `# ${'x'.repeat(600_000)}\n192.0.2.1\n192.0.2.2\n`],
  ['entries repeated', '192.0.2.1\n192.0.2.2\n192.0.2.1\n192.0.2.1/32\n::ffff:192.0.2.1\n'],
])('a list may have %s', (_, content) => {
  expect(listed(content, ['192.0.2.0', '192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.9'])).toEqual([
    '192.0.2.1',
    '192.0.2.2',
  ])
})

test('a list of nothing but comments is empty, and so is an empty file', () => {
  for (const content of ['', '\n', '# nobody\n', '\u{feff}'])
    expect(readList(write(content))).toMatchObject({ entries: 0 })
})

test('lines are read completely, wherever a chunk of the file ends', () => {
  for (const padding of [0, 1, 2, 3, 5, 8, 11, 12, 13]) {
    const first = `#${'x'.repeat(256 * 1024 - 1 - padding)}\n`
    expect(listed(`${first}203.0.113.77\r\n198.51.100.1\n`, ['203.0.113.77', '203.0.113.7'])).toEqual([
      '203.0.113.77',
    ])
  }
})

test.each([
  ['a host', 'example.com'],
  ['a name of networks', 'cloudflare'],
  ['three numbers', '10.0.0'],
  ['a number of five digits', '10.0.0.00001'],
  ['a leading zero', '010.0.0.1'],
  ['a prefix that is too long', '10.0.0.0/33'],
  ['an empty prefix', '10.0.0.0/'],
  ['a mask', '10.0.0.0/255.0.0.0'],
  ['a range of two addresses', '10.0.0.1-10.0.0.9'],
  ['two addresses', '10.0.0.1 10.0.0.2'],
  ['a number after it', '10.0.0.1\t8'],
  ['a zone', 'fe80::1%eth0'],
  ['a port', '10.0.0.1:80'],
  ['a long line that begins as an address', `10.0.0.1${' '.repeat(2000)}x10.0.0.2`.replace(/ /g, '0')],
])('%s is a bad line, and the others are read to find all', (_, line) => {
  const read = readList(write(`192.0.2.1\r\n${line}\n# comment\n\n${line}\n`))
  expect(read).toEqual({
    bad: [
      { line: 2, text: line.slice(0, 60) },
      { line: 5, text: line.slice(0, 60) },
    ],
    more: false,
  })
})

test('at most ten bad lines are kept, and whether there are more', () => {
  expect(readList(write('x\n'.repeat(10)))).toMatchObject({ more: false })
  expect(readList(write('x\n'.repeat(11)))).toMatchObject({ more: true })
})

test('text of UTF-16 has no entry, and is not taken for one', () => {
  const read = readList(write(Buffer.from('\u{feff}192.0.2.1\n', 'utf16le')))
  expect(read).toMatchObject({ bad: [{ line: 1 }, { line: 2 }] })
})

test('the line reported for an address is that of the first entry with it', () => {
  const path = write('# 1\n192.0.2.0/24\n192.0.2.7\n2001:db8::/32\n')
  const lineOf = (address: string) => readList(path, parseAddress(address))
  expect(lineOf('192.0.2.7')).toMatchObject({ found: 2 })
  expect(lineOf('2001:db8::1')).toMatchObject({ found: 4 })
  expect(lineOf('192.0.3.7')).not.toHaveProperty('found')
})

test.each(['0.0.0.0/0', '::/0', '::ffff:0:0/96', '255.1.2.3/0'])(
  '%s is an entry that covers everybody',
  (line) => {
    expect(readList(write(`192.0.2.1\n${line}\n`))).toMatchObject({ everybody: 2 })
  },
)

test('the first network that matches no client behind NAT64 is found, which looks as if it did', () => {
  const lines = [
    '192.0.2.0/24',
    '64:ff9b::192.0.2.1',
    '::/0',
    '2001:db8::/32',
    '64:ff9b::/96 # all',
    '64:ff9b::/32',
  ]
  expect(readList(write(lines.join('\n')))).toMatchObject({ missesNat64: { line: 5, text: '64:ff9b::/96' } })
  expect(readList(write(lines.slice(0, 4).join('\n')))).not.toHaveProperty('missesNat64')
})

test('a thread reads the same, and rejects with the reason where there is no file', async () => {
  const path = write('192.0.2.0/24\n2001:db8::/32\n192.0.4.0/24\n')
  expect(await readListInThread(path)).toEqual(readList(path))
  expect(await readListInThread(write('x\n'))).toEqual({ bad: [{ line: 1, text: 'x' }], more: false })
  await expect(readListInThread(`${path}.gone`)).rejects.toThrow('ENOENT: no such file or directory')
  await expect(readListInThread(makeTemporaryDirectory())).rejects.toThrow('EISDIR')
})

test.each([
  [8, (i: number) => `10.${i >> 8}.${i & 255}.1`],
  [18, (i: number) => `2001:db8:${i.toString(16)}::1`],
  [9.5, (i: number) => `2001:db8:${i.toString(16)}:1::/64`],
])('an entry takes %d bytes', (bytes, address) => {
  const read = readList(write(Array.from({ length: 992 }, (_, i) => `${address(i)}\n`).join('')))
  if (!('data' in read)) throw new Error(JSON.stringify(read))
  const sum = buffersOf(read.data).reduce((total, { byteLength }) => total + byteLength, 0)
  expect(sum).toBe(992 * bytes)
})

test('a list that is released keeps no memory', () => {
  const read = readList(write('192.0.2.1\n2001:db8::1\n'))
  if (!('data' in read)) throw new Error(JSON.stringify(read))
  doAtOnce(new SortedRanges(read.data).release())
  expect(buffersOf(read.data).map(({ byteLength }) => byteLength)).toEqual(Array(9).fill(0))
})

test('a set of a few ranges has no pages of its own, of which a process can have some thousands', () => {
  const builder = new RangeBuilder(2)
  for (const text of ['192.0.2.0/24', '2001:db8::/32']) {
    const range = parseAddressRange(text)
    if (range) builder.add(range)
  }
  const data = builder.build()
  expect(buffersOf(data).filter(({ resizable }) => resizable)).toEqual([])
  expect(new SortedRanges(data).has(parseAddress('2001:db8::1') ?? [])).toBe(true)
})

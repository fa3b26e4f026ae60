import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { openDatabase } from '../../../../proxy/request/addresses/geo/database.ts'
import { writeMmdb, type MmdbRecord } from '../../../support/geo/mmdb.ts'

const everywhere = (record: MmdbRecord): Buffer => writeMmdb({ '0.0.0.0/1': record, '128.0.0.0/1': record })

describe('a database of countries', () => {
  test.each<[vendor: string, record: MmdbRecord, country: string | undefined]>([
    ['MaxMind, DB-IP', { country: { iso_code: 'DE', names: { en: 'Germany' } } }, 'DE'],
    ['MaxMind, of a satellite provider', { registered_country: { iso_code: 'FR' } }, 'FR'],
    ['IPinfo', { country: 'us', country_name: 'United States' }, 'US'],
    ['IPinfo Lite', { country: 'United States', country_code: 'US' }, 'US'],
  ])('%s', (_, record, country) => {
    expect(openDatabase(everywhere(record), 'country').find('192.0.2.1')).toBe(country)
  })

  test('a database of countries has no country for an address that it does not have', () => {
    const database = openDatabase(
      writeMmdb({
        '1.0.0.0/8': { country: { iso_code: 'AU' } },
        '2001:db8::/32': { country: { iso_code: 'DE' } },
      }),
      'country',
    )
    expect(database.find('1.2.3.4')).toBe('AU')
    expect(database.find('2001:db8::5')).toBe('DE')
    expect(database.find('2.2.3.4')).toBeUndefined()
    expect(database.find('2001:db9::5')).toBeUndefined()
  })

  test('of IPv4 alone has no country for an IPv6 address', () => {
    const database = openDatabase(writeMmdb({ '0.0.0.0/1': { country: { iso_code: 'AU' } } }, 4), 'country')
    expect(database.find('1.2.3.4')).toBe('AU')
    expect(database.find('2001:db8::5')).toBeUndefined()
  })
})

describe('a database of autonomous systems', () => {
  test.each<[vendor: string, record: MmdbRecord, asn: string | undefined]>([
    [
      'MaxMind, DB-IP',
      { autonomous_system_number: 64496, autonomous_system_organization: 'Example' },
      'AS64496',
    ],
    ['IPinfo', { asn: 'AS64496', as_name: 'Example' }, 'AS64496'],
  ])('%s', (_, record, asn) => {
    expect(openDatabase(everywhere(record), 'asn').find('192.0.2.1')).toBe(asn)
  })
})

test('for random networks, an address has the record of the longest network that it is in', () => {
  const octets = fc.tuple(
    fc.constantFrom(1, 2, 128),
    fc.constantFrom(0, 255),
    fc.constantFrom(0, 1),
    fc.constantFrom(0, 9),
  )
  const network = fc.record({ octets, bits: fc.integer({ min: 4, max: 32 }) })
  fc.assert(
    fc.property(fc.array(network, { minLength: 1, maxLength: 8 }), octets, (networks, asked) => {
      const toNumber = (all: readonly number[]): number =>
        all.reduce((value, octet) => value * 256 + octet, 0)
      const maskedTo = (value: number, bits: number): number => Math.floor(value / 2 ** (32 - bits))
      const sorted = networks.toSorted((a, b) => a.bits - b.bits)
      const records = Object.fromEntries(
        sorted.map((each, i) => [`${each.octets.join('.')}/${each.bits}`, { asn: `AS${i + 1}` }]),
      )
      const holding = sorted.findLastIndex(
        (each) => maskedTo(toNumber(each.octets), each.bits) === maskedTo(toNumber(asked), each.bits),
      )
      const all = { '9.9.9.9': { asn: 'AS99' }, ...records }
      const expected = holding === -1 ? undefined : `AS${holding + 1}`
      expect(openDatabase(writeMmdb(all), 'asn').find(asked.join('.'))).toBe(expected)
    }),
  )
})

describe('a file that cannot be used', () => {
  const good = everywhere({ country: { iso_code: 'DE' } })

  test.each<[what: string, bytes: Buffer, message: string]>([
    ['empty', Buffer.alloc(0), 'it is not a whole file in the MMDB format'],
    ['text', Buffer.from('a,b\n'.repeat(1000)), 'it is not a whole file in the MMDB format'],
    ['its first half', good.subarray(0, good.length / 2), 'it is not a whole file in the MMDB format'],
    ['its second half', good.subarray(good.length - 300), 'it is not a whole file in the MMDB format'],
  ])('%s', (_, bytes, message) => {
    expect(() => openDatabase(bytes, 'country')).toThrow(message)
  })

  test('a database of another kind', () => {
    expect(() => openDatabase(good, 'asn')).toThrow('its records have no asn')
  })
})

test('an address whose record is damaged has nothing, wherever the damage is, and it is reported once', () => {
  const whole = writeMmdb({
    '1.0.0.0/8': { country: { iso_code: 'AU' } },
    '2001:db8::/32': { country: { iso_code: 'DE' } },
  })
  const reports: number[] = []
  for (const value of [0x3f, 0xff]) {
    for (let at = 0; at < whole.length; at++) {
      const bytes = Buffer.from(whole)
      bytes[at] = value
      let reported = 0
      const find = openOrRefuse(bytes, () => reported++)
      for (const address of ['1.2.3.4', '1.2.3.4', '2001:db8::5', '::1', '255.255.255.255']) find(address)
      reports.push(reported)
    }
  }
  expect(Math.max(...reports)).toBe(1)
})

function openOrRefuse(bytes: Buffer, onDamage: () => void): (address: string) => unknown {
  try {
    const database = openDatabase(bytes, 'country', onDamage)
    return (address) => database.find(address)
  } catch {
    return () => undefined
  }
}

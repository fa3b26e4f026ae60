import { parseAddress, type IpAddress } from '../../request/addresses/ip-address.ts'
import { mayRespellQuery } from '../../request/values/charsets.ts'
import type { KeySource } from '../keys/part-values.ts'
import { readClaim } from './claim-readings.ts'
import { createHeaderReader } from './header-readings.ts'
import { createCookiesReader, createQueryReader } from './name-value-pairs.ts'
import { createCookieReader, createParameterReader } from './parameter-readings.ts'
import { absent, anything, type Readings } from './readings.ts'

/** The parts of a request that conditions test. */
export type ConditionSource = Omit<KeySource, 'addresses'> & { readonly rawHeaders: readonly string[] }

type Read = (source: ConditionSource) => Readings

/** The readers of all conditions of a table. A part that several conditions test is read once per request. */
export class ConditionReaders {
  readonly #byPart = new Map<string, Read>()
  readonly #cookies = createCookiesReader()
  readonly #query = createQueryReader()
  readonly #wallNow: () => number
  #addressText: string | undefined
  #address: IpAddress | undefined

  /** @param wallNow the wall clock in milliseconds, for the validity of tokens */
  constructor(wallNow: () => number) {
    this.#wallNow = wallNow
  }

  /** @param name lower-case */
  header(name: string): Read {
    return this.#reader(`header ${name}`, () => createHeaderReader(name))
  }

  cookie(name: string): Read {
    return this.#reader(`cookie ${name}`, () => {
      const read = createCookieReader(name, this.#cookies)
      return ({ headers }) => read(headers.cookie)
    })
  }

  parameter(name: string): Read {
    return this.#reader(`query ${name}`, () => {
      const read = createParameterReader(name, this.#query)
      return ({ target: { forwardTarget }, headers }) => {
        const readings = read(forwardTarget)
        if (readings === absent) return absent
        const contentType = headers['content-type']
        return mayRespellQuery(contentType, forwardTarget) ? anything : readings
      }
    })
  }

  claim(name: string): Read {
    return ({ claims, headers: { authorization } }) =>
      readClaim(name, { claims, authorization, nowMs: this.#wallNow() })
  }

  address({ client: { address } }: ConditionSource): IpAddress | undefined {
    if (address !== this.#addressText) {
      this.#address = parseAddress(address)
      this.#addressText = address
    }
    return this.#address
  }

  #reader(part: string, create: () => Read): Read {
    const known = this.#byPart.get(part)
    if (known) return known
    const made = create()
    this.#byPart.set(part, made)
    return made
  }
}

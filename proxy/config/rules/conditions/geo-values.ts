import { z } from 'zod'
import { UNKNOWN } from '../../../request/addresses/geo/geo.ts'

const needsCountry = 'needs a country as two letters (ISO 3166-1), such as DE, or unknown'
const needsAsn = 'needs an autonomous system such as AS64496, or unknown'

/** Returns the ISO 3166-1 code that databases use for a country, if `code` is an alternative code of it. */
function officialCountry(code: string): string | undefined {
  const { region } = new Intl.Locale(`und-${code}`)
  return region === code ? undefined : region
}

export const country = z.string(needsCountry).transform((written, context): string => {
  if (written === UNKNOWN) return written
  const code = written.toUpperCase()
  const suggestion = /^[A-Z]{2}$/.test(code) ? officialCountry(code) : undefined
  if (/^[A-Z]{2}$/.test(code) && suggestion === undefined) return code
  const message = suggestion === undefined ? needsCountry : `${needsCountry}: did you mean ${suggestion}?`
  context.issues.push({ code: 'custom', message, input: written })
  return z.NEVER
})

const MAX_ASN = 4_294_967_295

export const asn = z
  .union([z.string(needsAsn), z.number(needsAsn)], needsAsn)
  .transform((written, context): string => {
    if (written === UNKNOWN) return written
    const [, digits] = /^(?:AS)?([1-9]\d{0,9})$/i.exec(String(written)) ?? []
    if (digits !== undefined && Number(digits) <= MAX_ASN) return `AS${digits}`
    context.issues.push({ code: 'custom', message: needsAsn, input: written })
    return z.NEVER
  })

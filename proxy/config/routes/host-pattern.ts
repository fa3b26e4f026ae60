import { domainToASCII } from 'node:url'
import { z } from 'zod'
import { showValue } from '../../../shared/settings/problems.ts'
import { comparableHost } from '../../request/host.ts'
import { parseAddress } from '../../request/addresses/ip-address.ts'

const needs = 'a host name such as app.example.com, or *.example.com for all names below it'
const name = /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_][a-z0-9_-]{0,62})*$/

/** A host to which a rule applies, in the spelling of `comparableHost`. `*.` before a name stands for all names below it. */
export const hostPattern = z.string(`needs ${needs}`).transform((text, context): string => {
  const [, wildcard = '', rest = ''] = /^(\*\.)?(.*)$/s.exec(text.toLowerCase()) ?? []
  const isAddress = wildcard === '' && parseAddress(rest.replace(/^\[(.*)\]$/, '$1')) !== undefined
  const host = comparableHost(isAddress && rest.includes(':') ? `[${rest.replace(/[[\]]/g, '')}]` : rest)
  const mistake = isAddress ? undefined : mistakeIn(rest, host)
  if (mistake === undefined) return wildcard + host
  context.issues.push({ code: 'custom', message: `needs ${mistake}`, input: text })
  return z.NEVER
})

function mistakeIn(text: string, host: string): string | undefined {
  if (text === '*') return `${needs}; without hosts a rule is for every host`
  if (text.includes('*')) return '* only as the whole first label, as in *.example.com'
  if (/^[a-z][a-z0-9+.-]*:\/\//.test(text) || text.includes('/'))
    return 'the host alone, without scheme and path'
  if (text.includes(':')) return 'the host without its port: a rule is for all ports'

  if (/[^\x00-\x7f]/.test(text)) {
    const ascii = domainToASCII(text)
    return `the name as clients send it${ascii === '' ? ', in Punycode' : `: ${showValue(ascii)}`}`
  }
  return name.test(host) ? undefined : needs
}

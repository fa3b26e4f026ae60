/** A text of names and values in which every parser finds the same ones. */
export type SimplePairs = {
  /** Undefined where the name is not there in any letter case. */
  find(name: ComparableName): SimplePair | undefined
}

/** `isRepeated`: another one has the same name to some backend. */
export type SimplePair = { readonly name: string; readonly value: string; readonly isRepeated: boolean }

/** A name of letters, digits, dots, dashes and underscores, in lower case, with `_` for a dot, and `=` behind it. */
export type ComparableName = string

/** No escapes, quotes, brackets or other separators, nor anything that some decoder changes. */
const simpleCookies = /^(?:[\w.-]+=[\w.:/*~@!-]*(?:; ?|$))+$/
const simpleQuery = /^(?:[\w.-]+=[\w.:*~@!-]*(?:&|$))+$/
/** Of a longer text some parsers ignore the rest. */
const MAX_LENGTH = 2048

/**
 * Reads usual cookies and queries, once for all conditions of a request: the readers of all that backends may find take
 * microseconds for each name.
 *
 * @returns undefined for a text that is not so simple
 */
export function createSimpleReader(kind: 'cookies' | 'query'): (text: string) => SimplePairs | undefined {
  const simple = kind === 'cookies' ? simpleCookies : simpleQuery
  const separator = kind === 'cookies' ? ';' : '&'
  let lastText: string | undefined
  let last: SimplePairs | undefined
  return (text) => {
    if (text === lastText) return last
    last = text.length <= MAX_LENGTH && simple.test(text) ? pairsIn(text, separator) : undefined
    lastText = text
    return last
  }
}

function pairsIn(text: string, separator: string): SimplePairs {
  const comparable = comparableText(text)
  const nextFrom = (name: ComparableName, from: number): number => {
    let at = comparable.indexOf(name, from)
    while (at > 0 && comparable[at - 1] !== separator && comparable[at - 1] !== ' ')
      at = comparable.indexOf(name, at + 1)
    return at
  }
  return {
    find(name) {
      const at = nextFrom(name, 0)
      if (at === -1) return undefined
      const start = at + name.length
      const next = text.indexOf(separator, start)
      return {
        name: text.slice(at, start - 1),
        value: text.slice(start, next === -1 ? undefined : next),
        isRepeated: nextFrom(name, start) !== -1,
      }
    },
  }
}

/** @param name of letters, digits, dots, dashes and underscores */
export function comparableName(name: string): ComparableName {
  return `${comparableText(name)}=`
}

function comparableText(text: string): string {
  return text.toLowerCase().replaceAll('.', '_')
}

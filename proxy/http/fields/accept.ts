/** A longer value is not read: browsers send 200 bytes, and a refused request should cost little. */
const MAX_LENGTH = 1024

type MediaRange = { readonly type: string; readonly quality: number }

/**
 * Whether a client prefers HTML to a body of another type (RFC 9110 section 12.5.1). If it gives both the same quality, its range for HTML
 * must be the more precise one: a browser's navigation names HTML, a script that accepts anything does not.
 *
 * @param accept the value of the request's `Accept`
 * @param contentType of the other body
 */
export function prefersHtml(accept: string | undefined, contentType: string): boolean {
  if (accept === undefined || accept.length > MAX_LENGTH) return false
  const ranges = accept.split(',').map(readRange)
  const html = bestMatch(ranges, 'text/html')
  const other = bestMatch(ranges, (contentType.split(';', 1)[0] ?? '').toLowerCase())
  if (html.quality !== other.quality) return html.quality > other.quality
  return html.quality > 0 && html.precision > other.precision
}

/** Ignores parameters other than the quality: any body of a type will do. */
function readRange(text: string): MediaRange {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase())
  const weight = parameters.find((parameter) => parameter.startsWith('q='))
  const quality = weight === undefined ? 1 : Number(weight.slice(2))
  return { type, quality: quality >= 0 && quality <= 1 ? quality : 0 }
}

/** The quality that the most precise range gives a type, and the precision of this range: 2 for the type itself, 0 for any type. */
function bestMatch(
  ranges: readonly MediaRange[],
  type: string,
): { readonly quality: number; readonly precision: number } {
  const [main = ''] = type.split('/', 1)
  for (const [index, name] of [type, `${main}/*`, '*/*'].entries()) {
    const found = ranges.find((range) => range.type === name)
    if (found) return { quality: found.quality, precision: 2 - index }
  }
  return { quality: 0, precision: -1 }
}

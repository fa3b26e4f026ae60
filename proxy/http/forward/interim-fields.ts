import type { ResponseHead } from '../upstream/response/response-head.ts'

/** The interim responses that are passed on, and which of their headers are. 100 was answered before the request was forwarded. */
const passed: ReadonlyMap<number, ReadonlySet<string>> = new Map([
  // Processing: keeps clients and load balancers waiting (RFC 2518 section 10.1).
  [102, new Set()],
  // Early Hints (RFC 8297).
  [103, new Set(['link'])],
  // Upload Resumption Supported: where to resume, and from which byte (draft-ietf-httpbis-resumable-upload).
  [104, new Set(['location', 'upload-offset', 'upload-limit', 'upload-draft-interop-version'])],
])

/**
 * The headers of an interim response as the client gets them: name, value, name, value… Undefined if it gets none: of a status
 * that nobody has defined, or hints without a link.
 */
export function interimFields({ status, fields }: ResponseHead): string[] | undefined {
  const names = passed.get(status)
  if (!names) return undefined
  const kept = fields.filter((_, i) => names.has(fields[i - (i % 2)] ?? ''))
  return status === 103 && kept.length === 0 ? undefined : kept
}

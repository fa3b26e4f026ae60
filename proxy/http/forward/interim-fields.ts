import type { ResponseHead } from '../upstream/response/response-head.ts'

/** The interim responses that are passed on, each with the headers that are kept. 100 was answered before the request was forwarded. */
const passed: ReadonlyMap<number, ReadonlySet<string>> = new Map([
  // Processing: asks clients and load balancers to keep waiting (RFC 2518 section 10.1).
  [102, new Set()],
  // Early Hints (RFC 8297).
  [103, new Set(['link'])],
  // Upload Resumption Supported: where to resume, and from which byte (draft-ietf-httpbis-resumable-upload).
  [104, new Set(['location', 'upload-offset', 'upload-limit', 'upload-draft-interop-version'])],
])

/**
 * Returns the headers of an interim response for the client: name, value, name, value… Undefined if the response is not passed on, because
 * its status is not defined or its hints have no link.
 */
export function interimFields({ status, fields }: ResponseHead): string[] | undefined {
  const names = passed.get(status)
  if (!names) return undefined
  const kept = fields.filter((_, i) => names.has(fields[i - (i % 2)] ?? ''))
  return status === 103 && kept.length === 0 ? undefined : kept
}

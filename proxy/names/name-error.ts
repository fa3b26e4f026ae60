/**
 * A lookup that found no address. The codes are those of `dns.lookup`: `ENOTFOUND` if the name does not exist or has no address;
 * `EAI_AGAIN` if there was no answer, so the name may exist.
 */
export class NameError extends Error {
  override readonly name = 'NameError'
  readonly code: 'ENOTFOUND' | 'EAI_AGAIN'
  readonly hostname: string

  constructor(code: 'ENOTFOUND' | 'EAI_AGAIN', hostname: string, cause?: unknown) {
    super(`lookup ${code} ${hostname}`, { cause })
    this.code = code
    this.hostname = hostname
  }
}

/** Codes of c-ares and `getaddrinfo` that mean that a name has no address. */
const noSuchName = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME'])

/** Whether the answer was that the name does not exist or has no address. Any other failure means that there was no answer. */
export function saysNoSuchName(error: unknown): boolean {
  return error instanceof Error && 'code' in error && noSuchName.has(String(error.code))
}

/** Codes of c-ares for a name server that answers without saying whether the name exists: SERVFAIL, REFUSED, NOTIMP. */
const serverFailed = new Set(['ESERVFAIL', 'EREFUSED', 'ENOTIMP'])

/** Whether a name server has answered that it has failed. Another one, or another domain, may know the name (glibc goes on, too). */
export function saysServerFailed(error: unknown): boolean {
  return error instanceof Error && 'code' in error && serverFailed.has(String(error.code))
}

/**
 * A name has no address, with the codes of `dns.lookup`: `ENOTFOUND`, the name does not exist or has no address; `EAI_AGAIN`, there was
 * no answer, so nothing is known about the name.
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

/** Codes of c-ares and of `getaddrinfo` by which a name is known to have no address. */
const noSuchName = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME'])

/** Whether the answer was that the name does not exist. Any other failure means that there was no answer. */
export function saysNoSuchName(error: unknown): boolean {
  return error instanceof Error && 'code' in error && noSuchName.has(String(error.code))
}

/** Whether a name server has answered SERVFAIL. It may know the name in another domain (`res_search` of glibc goes on too). */
export function saysServerFailed(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ESERVFAIL'
}

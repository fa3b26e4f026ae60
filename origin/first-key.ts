import type { KeyStore } from './key-store.ts'

/**
 * Creates the first API key if there is none yet.
 *
 * @param baseUrl where clients reach the service, without a final slash
 * @param keysCommand the command that creates more keys, without its arguments
 * @returns text to print for the operator, with the key, which cannot be shown again; undefined if a key exists
 */
export function makeFirstKey(keys: KeyStore, baseUrl: string, keysCommand: string): string | undefined {
  const first = keys.createFirstKey('Default', 'production')
  return (
    first &&
    `
First start: created an environment with an API key, which is not shown again. Try it:

  curl -H 'x-api-key: ${first.key}' ${baseUrl}/api/v1/me

More keys: ${keysCommand} create --project NAME

`
  )
}

import type { KeyStore } from './key-store.ts'

/**
 * Where no key has ever been made, makes one and tells how to try it.
 *
 * @param baseUrl where clients reach the service, without a final slash
 * @param keysCommand what makes more keys, but for its arguments
 * @returns what to print, once and to a person: the key cannot be had again. Nothing where there is a key.
 */
export function makeFirstKey(keys: KeyStore, baseUrl: string, keysCommand: string): string | undefined {
  const first = keys.createFirstKey('Default', 'production')
  return (
    first &&
    `
First start: an environment and its API key have been made. The key is shown only now. Try it:

  curl -H 'x-api-key: ${first.key}' ${baseUrl}/api/v1/me

More keys: ${keysCommand} create --project NAME

`
  )
}

/**
 * A redirection that names the host. `MOVED 3999 :6381` is to the host of the node that says so (`unknown-endpoint`); the library would
 * connect to this machine.
 *
 * @param message of any error
 * @param host of the node that sent it
 */
export function withHost(message: string, host = ''): string {
  return message.replace(/^((?:MOVED|ASK) \d+ )(?=:\d+$)/, (redirection) => redirection + host)
}

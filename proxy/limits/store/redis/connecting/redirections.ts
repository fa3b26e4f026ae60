/**
 * Adds the host to a redirection that does not name it. `MOVED 3999 :6381` leads to the host of the node that replied (`unknown-endpoint`);
 * the library would connect to this machine.
 *
 * @param message the message of any error
 * @param host the host of the node that sent it
 */
export function withHost(message: string, host = ''): string {
  return message.replace(/^((?:MOVED|ASK) \d+ )(?=:\d+$)/, (redirection) => redirection + host)
}

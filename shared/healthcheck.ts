import { get } from './node-http.ts'

/**
 * Checks a container's health: sets the exit status to 0 if the path answers 200 within two seconds, otherwise to 1, and prints the result
 * for `docker inspect`.
 *
 * @param host the address that the server listens on; connecting to the address of all interfaces connects to this machine
 */
export function checkHealth(host: string, port: number, path: string): void {
  const finish = (exitCode: number, found: string): void => {
    process.exitCode = exitCode
    console.log(`${path} on port ${port}: ${found}`)
  }
  get({ host, port, path, signal: AbortSignal.timeout(2_000) }, ({ statusCode = 0 }) => {
    finish(statusCode === 200 ? 0 : 1, `status ${statusCode}`)
    // Exit without reading the rest of the answer or closing the connection.
    process.exit()
  }).once('error', ({ message }) => finish(1, message))
}

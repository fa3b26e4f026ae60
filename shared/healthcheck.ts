import { get } from './node-http.ts'

/**
 * Checks a container's health: sets the exit status to 0 if the path answers 200 within two seconds, else to 1, and prints the result for
 * `docker inspect`.
 *
 * @param host as the server listens on it: to connect to the address of all interfaces is to connect to this machine
 */
export function checkHealth(host: string, port: number, path: string): void {
  const finish = (exitCode: number, found: string): void => {
    process.exitCode = exitCode
    console.log(`${path} on port ${port}: ${found}`)
  }
  get({ host, port, path, signal: AbortSignal.timeout(2_000) }, ({ statusCode = 0 }) => {
    finish(statusCode === 200 ? 0 : 1, `status ${statusCode}`)
    // The rest of the answer, and the connection, are of no interest.
    process.exit()
  }).once('error', ({ message }) => finish(1, message))
}

import { Session } from 'node:inspector'
import { Http1Connection } from '../../../proxy/http/http1/connection.ts'
import { Http1Response } from '../../../proxy/http/http1/response.ts'

// Loaded into a gateway by `test/e2e/request-path.test.ts`. For each request over HTTP/1 it prints the files that ran a function between
// the parsed head and the moment when the response is given to the connection. V8 counts each call.

const root = new URL('../../../', import.meta.url).href
const session = new Session()
session.connect()
session.post('Profiler.enable')
session.post('Profiler.startPreciseCoverage', { callCount: true })

/** The files that have run since the last time. */
function takeFiles(): string[] {
  let files: string[] = []
  // The callback runs synchronously, as the session inspects this thread.
  session.post('Profiler.takePreciseCoverage', (error, { result }) => {
    if (error) throw error
    const entered = result.filter(({ functions }) => functions.some(({ ranges }) => ranges[0]?.count))
    files = entered.map(({ url }) => url).filter((url) => url.startsWith(root))
  })
  return files.map((url) => url.slice(root.length))
}

const connection = Http1Connection.prototype
const serve = Object.getOwnPropertyDescriptor(connection, 'serve')?.value as typeof connection.serve
connection.serve = function (...exchange) {
  takeFiles()
  serve.apply(this, exchange)
}

const response = Http1Response.prototype
const end = Object.getOwnPropertyDescriptor(response, 'end')?.value as typeof response.end
response.end = function (...last) {
  end.apply(this, last)
  const files = takeFiles().filter((file) => !file.startsWith('test/'))
  process.stdout.write(`entered ${this.statusCode} ${JSON.stringify(files)}\n`)
}

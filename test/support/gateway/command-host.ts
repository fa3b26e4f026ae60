import { createServer } from 'node:http'
import { flushCompileCache } from 'node:module'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { runCommandLine } from '../../../proxy/cli/run-command-line.ts'
import type { HostedCommand } from './hosted-command.ts'
import type { Finished } from './process.ts'

// A process that runs commands, one after another, each as `proxy/cli/main.ts` runs one, for `hosted-command.ts`.

async function run({ args, env, cwd }: HostedCommand): Promise<Finished> {
  process.env = env
  process.chdir(cwd)
  const written = { stdout: '', stderr: '' }
  const own = {
    stdout: process.stdout.write.bind(process.stdout),
    stderr: process.stderr.write.bind(process.stderr),
  }
  for (const stream of ['stdout', 'stderr'] as const)
    process[stream].write = (chunk: string | Uint8Array): boolean => {
      written[stream] += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString()
      return true
    }
  try {
    return { status: (await runCommandLine(args)) ?? 0, ...written }
  } finally {
    process.stdout.write = own.stdout
    process.stderr.write = own.stderr
  }
}

let last: Promise<unknown> = Promise.resolve()

const control = createServer((request, response) => {
  const answer = async (): Promise<void> => {
    const command = JSON.parse(await text(request)) as HostedCommand
    response.end(JSON.stringify(await run(command)))
  }
  last = last.then(answer).catch((error: unknown) => response.writeHead(500).end(String(error)))
})

control.listen(0, '127.0.0.1', () => {
  process.stderr.write(`port ${(control.address() as AddressInfo).port}\n`)
  // Now, not at the end: this process is killed.
  flushCompileCache()
})

import {
  Client,
  credentials,
  Metadata,
  Server,
  ServerCredentials,
  status,
  type ClientDuplexStream,
  type ClientOptions,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
} from '@grpc/grpc-js'
import { readFileSync } from 'node:fs'
import { atEndOfFile } from '../run/at-end.ts'
import { authorityFile, readPair } from '../network/certificates.ts'
import { wallClockMs } from '../calendar/wall-clock.ts'

// A gRPC service and a client for it, with gRPC's own library for Node. Messages are bytes.

const asIs = (bytes: Buffer): Buffer => bytes
const serializers = {
  requestSerialize: asIs,
  requestDeserialize: asIs,
  responseSerialize: asIs,
  responseDeserialize: asIs,
}
const method = (name: string, requestStream: boolean, responseStream: boolean) => ({
  path: `/test.Echo/${name}`,
  requestStream,
  responseStream,
  ...serializers,
})

const service = {
  Unary: method('Unary', false, false),
  Collect: method('Collect', true, false),
  Count: method('Count', false, true),
  Chat: method('Chat', true, true),
}

export type GrpcServer = {
  readonly port: number
  /** The methods of calls that the client cancelled or whose deadline passed. */
  readonly cancelled: string[]
  /** Metadata of each call, in order. */
  readonly metadata: Metadata[]
  /** Milliseconds until the deadline of each call, at its arrival. */
  readonly deadlines: number[]
  /** Accepts no further calls on open connections, and ends once the running calls are over. */
  shutDown(): Promise<void>
}

/**
 * - `Unary` echoes its message, and returns `echo` and `echo-bin` as metadata and trailers. It answers the message `fail` with an error,
 *   and `wait` never.
 * - `Collect` answers with the number of bytes it received.
 * - `Count` takes `N SIZE`, and sends N messages of SIZE bytes.
 * - `Chat` sends back each message.
 */
export async function startGrpcServer({
  tls = false,
  options = {},
}: { readonly tls?: boolean; readonly options?: object } = {}): Promise<GrpcServer> {
  const server = new Server({ 'grpc.max_receive_message_length': 8 * 1024 * 1024, ...options })
  const cancelled: string[] = []
  const metadata: Metadata[] = []
  const deadlines: number[] = []
  type Call = {
    readonly metadata: Metadata
    getDeadline(): Date | number
    on(event: 'cancelled', listener: () => void): unknown
  }
  const see = (name: string, call: Call): void => {
    metadata.push(call.metadata)
    // gRPC's deadlines are times of the wall clock.
    deadlines.push(Number(call.getDeadline()) - wallClockMs())
    call.on('cancelled', () => cancelled.push(name))
  }
  const echoed = (from: Metadata): Metadata => {
    const to = new Metadata()
    for (const name of ['echo', 'echo-bin']) for (const value of from.get(name)) to.add(name, value)
    return to
  }
  server.addService(service, {
    Unary(call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>) {
      see('Unary', call)
      const said = call.request.toString()
      if (said === 'wait') return
      if (said === 'fail')
        answer({ code: status.NOT_FOUND, details: 'no such thing: ü', metadata: echoed(call.metadata) })
      else {
        call.sendMetadata(echoed(call.metadata))
        answer(null, call.request, echoed(call.metadata))
      }
    },
    Collect(call: ServerReadableStream<Buffer, Buffer>, answer: sendUnaryData<Buffer>) {
      see('Collect', call)
      let bytes = 0
      call.on('data', (message: Buffer) => (bytes += message.length))
      call.on('end', () => answer(null, Buffer.from(String(bytes))))
    },
    Count(call: ServerWritableStream<Buffer, Buffer>) {
      see('Count', call)
      const [count = 0, size = 0] = call.request.toString().split(' ').map(Number)
      let sent = 0
      const go = (): void => {
        while (sent < count) {
          sent++
          if (!call.write(Buffer.alloc(size, 'c'))) return void call.once('drain', go)
        }
        call.end()
      }
      go()
    },
    Chat(call: ServerDuplexStream<Buffer, Buffer>) {
      see('Chat', call)
      call.on('data', (message: Buffer) => call.write(message))
      call.on('end', () => call.end())
    },
  })
  const { key, cert } = readPair('first')
  const by = tls
    ? ServerCredentials.createSsl(null, [{ private_key: key, cert_chain: cert }])
    : ServerCredentials.createInsecure()
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', by, (error, chosen) => (error ? reject(error) : resolve(chosen)))
  })
  atEndOfFile(() => server.forceShutdown())
  return {
    port: bound,
    cancelled,
    metadata,
    deadlines,
    shutDown: () => new Promise((resolve) => server.tryShutdown(() => resolve())),
  }
}

export type GrpcClient = {
  readonly client: Client
  unary(message: Buffer | string, metadata?: Metadata, options?: { deadline?: number }): Promise<Reply>
  collect(messages: readonly Buffer[]): Promise<string>
  /** Asks for `messages` messages of `size` bytes, and returns the size of each message received. */
  count(messages: number, size: number): Promise<number[]>
  chat(): ClientDuplexStream<Buffer, Buffer>
  /** Asks for `messages` messages of `size` bytes, and reads only the first. */
  stall(messages: number, size: number): { readonly begun: Promise<unknown>; readonly cancel: () => void }
}

export type Reply = { readonly message: Buffer; readonly head: Metadata; readonly trailers: Metadata }

/** One connection to a port of this machine. */
export function connectGrpc(port: number, tls: boolean, options: ClientOptions = {}): GrpcClient {
  const by = tls ? credentials.createSsl(readFileSync(authorityFile)) : credentials.createInsecure()
  const client = new Client(`127.0.0.1:${port}`, by, {
    'grpc.max_receive_message_length': 8 * 1024 * 1024,
    'grpc.enable_retries': 0,
    // An IP address cannot be the TLS server name.
    ...(tls && { 'grpc.ssl_target_name_override': 'localhost' }),
    ...options,
  })
  atEndOfFile(() => client.close())
  const { Unary, Collect, Count, Chat } = service
  return {
    client,
    unary: (message, metadata = new Metadata(), callOptions = {}) =>
      new Promise((resolve, reject) => {
        let head = new Metadata()
        let answer: Buffer = Buffer.alloc(0)
        const call = client.makeUnaryRequest(
          Unary.path,
          asIs,
          asIs,
          Buffer.from(message),
          metadata,
          callOptions,
          (error, value) => {
            if (error) reject(error)
            else answer = value ?? answer
          },
        )
        call.on('metadata', (received) => (head = received))
        call.on('status', ({ metadata: trailers }) => resolve({ message: answer, head, trailers }))
      }),
    collect: (messages) =>
      new Promise((resolve, reject) => {
        const call = client.makeClientStreamRequest(Collect.path, asIs, asIs, (error, value) =>
          error ? reject(error) : resolve(String(value)),
        )
        for (const message of messages) call.write(message)
        call.end()
      }),
    count: (messages, size) =>
      new Promise((resolve, reject) => {
        const lengths: number[] = []
        const asked = Buffer.from(`${messages} ${size}`)
        const call = client.makeServerStreamRequest(Count.path, asIs, asIs, asked)
        call.on('data', (message: Buffer) => lengths.push(message.length))
        call.on('error', reject)
        call.on('end', () => resolve(lengths))
      }),
    stall(messages, size) {
      const asked = Buffer.from(`${messages} ${size}`)
      const call = client.makeServerStreamRequest(Count.path, asIs, asIs, asked)
      call.on('error', () => undefined)
      return {
        begun: new Promise((resolve) => call.once('data', () => resolve(call.pause()))),
        cancel: () => call.cancel(),
      }
    },
    chat: () => client.makeBidiStreamRequest(Chat.path, asIs, asIs),
  }
}

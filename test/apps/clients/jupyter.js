import { randomUUID } from 'node:crypto'
import { subscribe } from 'node:diagnostics_channel'
import { Agent, fetch, WebSocket } from 'undici'

// Writes a notebook, runs code in a kernel and interrupts it. Arguments: origin, protocol, a name for the notebook.

const [origin = '', protocol, name = ''] = process.argv.slice(2)

const protocols = new Set()
subscribe('undici:client:connected', ({ socket }) => protocols.add(socket.alpnProtocol || 'http/1.1'))
const dispatcher = new Agent({ allowH2: protocol === 'http2' })

async function ask(method, path, body) {
  const response = await fetch(origin + path, {
    method,
    dispatcher,
    ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  })
  const text = await response.text()
  return { status: response.status, value: text === '' ? undefined : JSON.parse(text) }
}

const cells = [{ cell_type: 'code', source: 'print(1)', metadata: {}, outputs: [], execution_count: null }]
const content = { nbformat: 4, nbformat_minor: 4, metadata: {}, cells }
const path = `/api/contents/${encodeURIComponent(`${name} ü.ipynb`)}`
await ask('PUT', path, { type: 'notebook', content })
const { value: read } = await ask('GET', path)

const { value: kernel } = await ask('POST', '/api/kernels', { name: 'python3' })
const session = randomUUID()
const socket = new WebSocket(
  `${origin.replace(/^http/, 'ws')}/api/kernels/${kernel.id}/channels?session_id=${session}`,
  { dispatcher: new Agent({ allowH2: false }) },
)
await new Promise((resolve, reject) => {
  socket.onopen = resolve
  socket.onerror = () => reject(new Error('the kernel has no WebSocket'))
})

/** Runs code to its end; `started` is called with the first output. */
function execute(code, started = () => undefined) {
  const id = randomUUID()
  const seen = { output: 0, result: undefined, error: undefined }
  return new Promise((resolve) => {
    const listen = ({ data }) => {
      const { parent_header: parent, msg_type: type, content } = JSON.parse(data)
      if (parent.msg_id !== id) return
      if (type === 'stream') seen.output += content.text.length
      if (type === 'execute_result') seen.result = content.data['text/plain']
      if (type === 'error') seen.error = content.ename
      if (type === 'stream') started()
      if (type !== 'status' || content.execution_state !== 'idle') return
      socket.removeEventListener('message', listen)
      resolve(seen)
    }
    socket.addEventListener('message', listen)
    const header = { msg_id: id, username: '', session, msg_type: 'execute_request', version: '5.3' }
    const request = {
      code,
      silent: false,
      store_history: true,
      user_expressions: {},
      allow_stdin: false,
      stop_on_error: true,
    }
    socket.send(
      JSON.stringify({ header, parent_header: {}, metadata: {}, channel: 'shell', content: request }),
    )
  })
}

const { result } = await execute("'ü ' + str(6 * 7)")
const { output } = await execute("print('x' * 199_999)")
let isInterrupted = false
const { error } = await execute("import time\nprint('started', flush=True)\ntime.sleep(60)", () => {
  if (!isInterrupted) void ask('POST', `/api/kernels/${kernel.id}/interrupt`)
  isInterrupted = true
})
socket.close()
await ask('DELETE', `/api/kernels/${kernel.id}`)
await ask('DELETE', path)
const { status } = await ask('GET', path)
const saved = read.content.cells.map(({ source }) => source)
console.log(
  JSON.stringify({
    result,
    output,
    interrupted: error,
    saved,
    deleted: status,
    protocols: [...protocols].sort(),
  }),
)
await dispatcher.close()

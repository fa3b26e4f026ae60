/**
 * The parts of Node's `http` that are used. `import … from 'node:http'` reads every property of that module, and one of them, its
 * WebSocket client, is loaded when it is read: 35 ms of CPU at each start, for code that no process here uses.
 */
export const { METHODS, STATUS_CODES, createServer, get } = process.getBuiltinModule('node:http')

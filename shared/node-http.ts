/**
 * The parts of Node's `http` that are used. `import … from 'node:http'` reads every property of that module. Reading one of them loads
 * Node's WebSocket client, which costs 35 ms of CPU at each start and which no process here uses.
 */
export const { METHODS, STATUS_CODES, createServer, get } = process.getBuiltinModule('node:http')

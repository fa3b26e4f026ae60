import { Agent, createServer } from 'node:http'
import httpProxy from 'http-proxy'
import { backendUrl, connections, port } from './settings.js'

// `http-proxy` alone, without any limits. Without an agent it opens a connection to the backend for every request. Their
// number has no bound, because it does not let go of those whose client went away in the middle of a response.
const proxy = httpProxy.createProxyServer({
  target: backendUrl,
  agent: new Agent({ keepAlive: true, maxFreeSockets: connections }),
  // X-Forwarded-For, -Port, -Proto and -Host.
  xfwd: true,
})
proxy.on('error', (_error, _request, response) => response.writeHead(502).end())

createServer((request, response) => proxy.web(request, response)).listen(port, '127.0.0.1')

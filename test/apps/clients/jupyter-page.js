import { protocolsOf, withPage } from './browser.js'

// Runs and saves a notebook in Jupyter's own page. A save that is refused is done again by hand; the connection to the kernel is made again
// by the page. Arguments: origin, protocol, the path of an empty notebook.

const [origin, protocol, path] = process.argv.slice(2)
const PAUSE_MS = 100

await withPage(protocol, async (page) => {
  const errors = []
  // Told where the client fails.
  page.on('console', (message) => console.error(message.text()))
  page.on('pageerror', (error) => errors.push(String(error)))
  const refused = new Set()
  page.on('response', (response) => {
    if (response.status() === 429) refused.add(response.request().method())
  })
  page.on('websocket', (socket) =>
    socket.on('socketerror', (text) => refused.add(/429/.test(text) ? 'WebSocket' : text)),
  )

  // Chromium ends requests where another program makes or removes a network interface.
  let isInterrupted = false
  page.on('requestfailed', (request) => {
    if (request.failure()?.errorText === 'net::ERR_NETWORK_CHANGED') isInterrupted = true
  })
  const isConnected = () =>
    page.evaluate(() => window.Jupyter?.notebook?.kernel?.is_connected() ?? false).catch(() => false)
  const open = async () => {
    do {
      isInterrupted = false
      await page.goto(`${origin}/notebooks/${path}`).catch((error) => {
        if (!/ERR_NETWORK_CHANGED|chrome-error:/.test(error.message)) throw error
        isInterrupted = true
      })
      while (!isInterrupted && !(await isConnected())) await page.waitForTimeout(PAUSE_MS)
    } while (isInterrupted)
  }
  const execute = (code) =>
    page.evaluate(async (text) => {
      const { notebook } = window.Jupyter
      const cell = notebook.insert_cell_at_bottom('code')
      cell.set_text(text)
      await new Promise((resolve) => {
        cell.events.one('finished_execute.CodeCell', resolve)
        cell.execute()
      })
      return cell.output_area.outputs.map(({ data, text: output }) => output ?? data['text/plain']).join('')
    }, code)
  const save = () =>
    page.evaluate(() =>
      window.Jupyter.notebook.save_notebook().then(
        () => 'saved',
        (error) => error.xhr?.status ?? String(error),
      ),
    )
  const saveUntilDone = async () => {
    const results = new Set()
    while (!results.has('saved')) {
      results.add(await save())
      await page.waitForTimeout(PAUSE_MS)
    }
    return [...results]
  }

  await open()
  const first = await execute("x = 'ü 42'\nprint(x)")
  const saves = await saveUntilDone()
  const protocols = await protocolsOf(page)
  await open()
  // The kernel is the same.
  const second = await execute('x')
  saves.push(...(await saveUntilDone()))
  return { first, second, saves: [...new Set(saves)].sort(), refused: [...refused].sort(), errors, protocols }
})

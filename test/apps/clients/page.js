import { request } from 'node:http'
import { withPage } from './browser.js'

// An operator at the page of one of two gateways on the same Redis.

const [origin, protocol, token, ...ports] = process.argv.slice(2)

function ask(port) {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path: '/api', agent: false }
    request(options, (response) => response.resume().on('end', () => resolve(response.statusCode)))
      .on('error', reject)
      .end()
  })
}

await withPage(protocol, async (tab) => {
  const problems = []
  const elsewhere = []
  // A network, which is not a client, is looked up too: the browser itself logs the response.
  tab.on('console', (message) => {
    if (!message.text().includes('status of 400')) problems.push(message.text())
  })
  tab.on('pageerror', (error) => problems.push(String(error)))
  tab.on('request', (asked) => {
    if (new URL(asked.url()).origin !== origin || asked.url().includes(token)) elsewhere.push(asked.url())
  })
  await tab.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => console.error(event.violatedDirective))
  })
  /** With the keyboard alone. */
  const press = async (label) => {
    for (let pressed = 0; pressed < 60; pressed++) {
      const focused = await tab.evaluate(() => {
        const { activeElement: element } = document
        return element?.getAttribute('aria-label') ?? element?.textContent
      })
      if (focused === label) return tab.keyboard.press('Enter')
      await tab.keyboard.press('Tab')
    }
    throw new Error(`no button ${label} can be reached by Tab`)
  }

  await tab.goto(`${origin}/`)
  await tab.getByLabel('Admin token').waitFor()
  await tab.keyboard.type('not the token')
  await tab.keyboard.press('Enter')
  await tab.getByRole('alert').getByText('token').waitFor()
  const wrongToken = await tab.getByRole('alert').first().innerText()
  // The browser itself logs errors to the console.
  problems.length = 0
  await tab.keyboard.type(token)
  await tab.keyboard.press('Enter')
  await tab.getByText('No client is over a limit.').waitFor()
  const health = await tab.locator('#health').innerText()

  // The page is that of the first.
  const exhaust = async () => [await ask(ports[1]), await ask(ports[1]), await ask(ports[1])]
  const shown = async () => {
    const refusedAt = performance.now()
    await tab.locator('#limited').getByText('127.0.0.1').waitFor()
    return performance.now() - refusedAt
  }
  const letBackIn = async () => {
    await press('Let back in: 127.0.0.1 under api')
    await tab.getByText('127.0.0.1 may pass again under api').waitFor()
    await tab.getByText('No client is over a limit.').waitFor()
  }
  const statuses = await exhaust()
  const shownAfterEachMs = [await shown()]
  const timeLeft = await tab.locator('#limited td[data-name="Time left"]').innerText()
  const elsewhereToo = await ask(ports[0])
  await letBackIn()
  // A busy machine may stand still in one of the three.
  for (let again = 1; again <= 2; again++) {
    await exhaust()
    shownAfterEachMs.push(await shown())
    await letBackIn()
  }
  const shownAfterMs = Math.min(...shownAfterEachMs)
  const letIn = [await ask(ports[0]), await ask(ports[1]), await ask(ports[1])]

  await tab.locator('#limited').getByText('127.0.0.1').waitFor()
  // Looked up, with all that can be done.
  await tab.getByLabel('Client', { exact: true }).fill('127.0.0.1')
  await tab.keyboard.press('Enter')
  await tab.locator('#looked-up').getByText('over limit').waitFor()
  await press('Ban for 1 hour: 127.0.0.1 under api, looked up')
  await tab.locator('#looked-up').getByText('banned for').waitFor()
  await press('Unban: 127.0.0.1 under api, looked up')
  await tab.locator('#looked-up').getByText('over limit').waitFor()
  await press('Override: 127.0.0.1 under api, looked up')
  await tab.getByLabel('Requests', { exact: true }).fill('50')
  await tab.keyboard.press('Enter')
  await tab.locator('#looked-up').getByText('own limit for').waitFor()
  await press('Remove the limit of 127.0.0.1 under api')
  await tab.getByText('No client has a limit of its own').waitFor()
  await press('Let in: 127.0.0.1 under api, looked up')
  await tab.locator('#looked-up').getByText('within').waitFor()
  // The other gateway hears within a second that the client was let in, and which limit it has.
  while ((await ask(ports[1])) === 429) await tab.waitForTimeout(50)
  while ((await ask(ports[1])) !== 429) await tab.waitForTimeout(50)
  await tab.locator('#limited').getByText('127.0.0.1').waitFor()
  await tab.getByLabel('Client', { exact: true }).fill('10.0.0.0/8')
  await tab.keyboard.press('Enter')
  await tab.locator('#looked-up').getByText('denyList').waitFor()

  await press('Ban for 1 hour: 127.0.0.1')
  await tab.locator('#bans').getByText('127.0.0.1').waitFor()
  await press('Undo')
  await tab.getByText('Nobody is banned.').waitFor()

  await press('Override: 127.0.0.1 under api')
  await tab.getByLabel('Requests', { exact: true }).fill('3')
  await tab.keyboard.press('Enter')
  await tab.locator('#overrides').getByText('127.0.0.1').waitFor()
  await tab.getByText('No client is over a limit.').waitFor()
  await press('Remove the limit of 127.0.0.1 under api')
  await tab.getByText('No client has a limit of its own').waitFor()
  await ask(ports[0])
  await tab.locator('#limited').getByText('127.0.0.1').waitFor()

  await press('Ban for 1 hour: 127.0.0.1')
  await tab.locator('#bans').getByText('127.0.0.1').waitFor()
  await tab.getByLabel('Target').fill('/api')
  await tab.keyboard.press('Enter')
  await tab.getByText('banned by operator').waitFor()
  await press('Unban 127.0.0.1')
  await tab.getByText('Nobody is banned.').waitFor()
  await tab.getByLabel('Target').press('Enter')
  await tab.getByText('It would be refused now, by api.').waitFor()
  const replicas = await tab.locator('#replicas tr').count()

  await tab.reload()
  await tab.locator('#limited').getByText('127.0.0.1').waitFor()
  const title = await tab.title()
  const refused = { statuses, shownAfterMs, timeLeft, elsewhereToo, letIn }
  return { health, wrongToken, ...refused, replicas, problems, elsewhere, title }
})

import { withPage } from './browser.js'

// The page while its gateway is stopped and started anew.

const [origin, protocol, control] = process.argv.slice(2)
const have = (what) => fetch(`${control}/${what}`, { method: 'POST' })

await withPage(protocol, async (tab) => {
  const errors = []
  tab.on('pageerror', (error) => errors.push(String(error)))
  await tab.goto(`${origin}/`)
  await have('refusals')
  await tab.locator('#limited').getByText('127.0.0.1').waitFor()
  await have('stop')
  await tab.getByText(' since ').waitFor()
  const away = { title: await tab.title(), isStale: await tab.locator('#content.stale').isVisible() }
  await have('start')
  await tab.locator('#health', { hasText: 'Healthy' }).waitFor()
  await tab.getByText('No client is over a limit.').waitFor()
  await have('refusals')
  await tab.locator('#limited').getByText('127.0.0.1').waitFor()
  const back = { title: await tab.title(), isStale: await tab.locator('#content.stale').isVisible() }
  return { away, back, errors }
})

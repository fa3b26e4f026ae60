import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { withPage } from './browser.js'

// The page in each of its states, wide and light, narrow and dark, looked through by axe.

const [origin, protocol, token, control, pictures] = process.argv.slice(2)
const have = (what) => fetch(`${control}/${what}`, { method: 'POST' })
const axe = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8')
const looks = [
  { name: 'light', colorScheme: 'light', width: 1280, height: 900 },
  { name: 'dark', colorScheme: 'dark', width: 390, height: 800 },
]

await withPage(protocol, async (tab) => {
  const violations = []
  const overflowing = []
  const healths = {}
  const errors = []
  let checked = 0
  tab.on('pageerror', (error) => errors.push(String(error)))

  async function look(state) {
    healths[state] = await tab.locator('#health').innerText()
    for (const { name, colorScheme, width, height } of looks) {
      await tab.emulateMedia({ colorScheme })
      await tab.setViewportSize({ width, height })
      if (pictures) await tab.screenshot({ path: join(pictures, `${state}-${name}.png`) })
      const found = await tab.evaluate(() => globalThis.axe.run())
      checked += found.passes.length
      for (const { id, nodes } of found.violations)
        violations.push(
          `${state}, ${name}: ${id} at ${nodes.map(({ target }) => target.join(' ')).join(', ')}`,
        )
      if (await tab.evaluate(() => document.documentElement.scrollWidth > innerWidth))
        overflowing.push(`${state}, ${name}`)
    }
  }
  const load = async () => {
    await tab.goto(`${origin}/`)
    await tab.evaluate(axe)
  }

  await load()
  await tab.getByLabel('Admin token').waitFor()
  await look('sign-in')
  await tab.getByLabel('Admin token').fill(token)
  await tab.keyboard.press('Enter')
  await tab.getByText('No client is over a limit.').waitFor()
  await tab.locator('#replicas tr').first().waitFor()
  await look('empty')
  await have('busy')
  await tab.locator('#limited').getByText('127.0.0.1').waitFor()
  await tab.locator('#bans tr').first().waitFor()
  await look('busy')
  const facts = await factsOf(tab)
  await tab.getByLabel('Client', { exact: true }).fill('127.0.0.1')
  await tab.keyboard.press('Enter')
  await tab.locator('#looked-up').getByText('over limit').waitFor()
  await look('looked-up')
  await tab.getByLabel('Target').fill('/api')
  await tab.keyboard.press('Enter')
  await tab.getByText('It would be refused now, by api.').waitFor()
  await look('explained')
  await tab.locator('#limited').getByText('Override').first().click()
  await look('dialog')
  await tab.keyboard.press('Escape')
  await have('wrong-reload')
  await tab.getByText('The last reload was refused').waitFor()
  await tab
    .locator('#reload-mistakes')
    .getByText(/sluice\.yaml:1: limits: got "nonsense"/)
    .waitFor()
  await look('refused-reload')
  await have('redis-away')
  await tab.getByText('Redis unavailable').waitFor()
  await tab.getByText('Of this gateway alone: Redis does not answer.').waitFor()
  await look('redis-away')
  return { violations, overflowing, healths, errors, checked, ...facts }
})

/** The first visible element, and the width of the plots, on a phone and on a wide screen. */
async function factsOf(tab) {
  const facts = {}
  for (const { name, width, height } of looks) {
    await tab.setViewportSize({ width, height })
    facts[name] = await tab.evaluate(() => {
      const top = (id) => document.getElementById(id).getBoundingClientRect().top
      const plot = document.querySelector('#rules svg').getBoundingClientRect().width
      return {
        isRefusedFirst: top('limited') < Math.min(top('state'), top('rules')) && top('limited') < innerHeight,
        plotPart: plot / document.getElementById('content').getBoundingClientRect().width,
        axis: document.querySelector('#rules .axis').innerText.replace(/\s+/g, ' '),
        counts: document.querySelector('#rules .counts').innerText,
      }
    })
  }
  return { facts }
}

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { withPage } from './browser.js'

// An operator sets, undoes, lists and removes the plan of a customer, with the keyboard.

const [origin, protocol, token, control, pictures] = process.argv.slice(2)
const axe = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8')
const quota = async () => (await fetch(`${control}/ask`, { method: 'POST' })).text()

await withPage(protocol, async (tab) => {
  const errors = []
  tab.on('pageerror', (error) => errors.push(String(error)))
  await tab.goto(`${origin}/`)
  await tab.evaluate(axe)
  await tab.getByLabel('Admin token').fill(token)
  await tab.keyboard.press('Enter')
  const planned = tab.locator('#planned')

  await tab.getByLabel('Whose plan').fill('header:x-api-key=k-1')
  await tab.keyboard.press('Enter')
  await planned.getByText('none').waitFor()
  const names = await tab.locator('#plan-name').locator('option').allInnerTexts()
  const quotas = [await quota()]

  await tab.locator('#plan-name').selectOption('pro')
  await tab.getByRole('button', { name: 'Set the plan' }).focus()
  await tab.keyboard.press('Enter')
  await tab.locator('#told').getByText('has the plan pro').waitFor()
  await planned.getByText('pro', { exact: true }).waitFor()
  const redisKey = await planned.locator('td[data-name="Key of Redis"]').innerText()
  quotas.push(await quota())

  const seen = []
  for (const { name, width, height } of [
    { name: 'wide', width: 1280, height: 900 },
    { name: 'phone', width: 390, height: 800 },
  ]) {
    await tab.setViewportSize({ width, height })
    if (pictures) await tab.screenshot({ path: join(pictures, `plans-${name}.png`), fullPage: true })
    for (const { id } of (await tab.evaluate(() => globalThis.axe.run())).violations)
      seen.push(`${name}: ${id}`)
    if (await tab.evaluate(() => document.documentElement.scrollWidth > innerWidth))
      seen.push(`${name}: overflow`)
  }

  await tab.getByRole('button', { name: 'Undo' }).click()
  await tab.locator('#told').getByText('has no plan again').waitFor()
  await planned.getByText('none').waitFor()
  quotas.push(await quota())

  await tab.getByRole('button', { name: 'Set the plan' }).click()
  await planned.getByText('pro', { exact: true }).waitFor()
  await tab.getByRole('button', { name: 'List clients with a plan' }).click()
  await planned.getByText('header:x-api-key', { exact: true }).waitFor()
  await planned.getByRole('button', { name: /^Remove the plan of h:/ }).click()
  await tab.locator('#told').getByText('has no plan any more').waitFor()
  quotas.push(await quota())

  await tab.getByLabel('Whose plan').fill('cookie:x=1')
  await tab.getByRole('button', { name: 'Set the plan' }).click()
  await tab
    .locator('#told')
    .getByText(/must have a value for each part|No rule with plan: store/)
    .waitFor()
  return { names, quotas, redisKey, seen, errors }
})

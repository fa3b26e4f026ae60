// The operators' page. All data comes from `/api/events`; the buttons use the API of docs/operations.md. Values are only ever set as text,
// so that no client's name can become markup.

import { showBans, showLimited, showOverrides } from './clients.js'
import { at, setClass } from './dom.js'
import './explain.js'
import { ask, follow, hasToken, setToken, Unauthorized } from './gateway.js'
import './lookup.js'
import { showPlanNames } from './plans.js'
import { setHealth, showHealth, showRefusedReload, showReplicas, showState } from './overview.js'
import { takeCounts, takeHistory } from './rates.js'
import { setLimits, showRules } from './rules.js'

/** The tables. Each is drawn in a frame of its own, because drawing all of them takes longer than a frame. */
const tables = [showRules, showLimited, showBans, showOverrides, showReplicas]
/** The index of the next table, and the number of tables that do not show the newest data yet. */
let nextTable = 0
let outdatedTables = 0
let newest

const WRONG_TOKEN = 'Wrong token: enter the ADMIN_TOKEN that this gateway was started with'

let tableHash = ''
let awaySince
let isRunning = false

async function take(event, data) {
  if (event === 'history') return takeHistory(data)
  if (event !== 'status') return
  if (data.status.tableHash !== tableHash) {
    const { limits } = await (await ask('api/limits')).json()
    setLimits(limits)
    showPlanNames(limits)
    tableHash = data.status.tableHash
  }
  show(data)
}

async function run() {
  if (isRunning) return
  isRunning = true
  for (;;) {
    let problem = 'The gateway ended the connection'
    try {
      await follow(take)
    } catch (error) {
      if (error instanceof Unauthorized) {
        isRunning = false
        return askForToken(hasToken() ? WRONG_TOKEN : '')
      }
      // If the network is unavailable, the message is the browser's own.
      problem = error instanceof TypeError || error.name === 'AbortError' ? 'No answer' : error.message
    }
    showAway(problem)
    await new Promise((resolve) => setTimeout(resolve, 1_000))
  }
}

function show(now) {
  awaySince = undefined
  at('content').hidden = false
  setClass(at('content'), '')
  showHealth(now)
  showRefusedReload(now)
  showState(now)
  takeCounts(now)
  newest = now
  if (outdatedTables === 0) requestAnimationFrame(writeTable)
  outdatedTables = tables.length
}

function writeTable() {
  const write = tables[nextTable]
  nextTable = (nextTable + 1) % tables.length
  // Request the next frame first, so that the other tables are written even if this one fails.
  if (--outdatedTables > 0) requestAnimationFrame(writeTable)
  write(newest)
}

function showAway(problem) {
  awaySince ??= new Date()
  setHealth(`${problem} since ${awaySince.toLocaleTimeString()}`, 'bad')
  setClass(at('content'), 'stale')
}

function askForToken(why) {
  setToken('')
  at('content').hidden = true
  at('sign-in').hidden = false
  setHealth('Token needed', 'warn')
  at('token-error').textContent = why
  at('token').focus()
}

addEventListener('unauthorized', () => askForToken(WRONG_TOKEN))

at('token-form').addEventListener('submit', (event) => {
  event.preventDefault()
  setToken(at('token').value.trim())
  at('token').value = ''
  at('sign-in').hidden = true
  setHealth('Connecting', '')
  void run()
})

if (document.documentElement.dataset.token === 'needed' && !hasToken()) askForToken('')
else void run()

import { ban, letIn, override, unban } from './actions.js'
import { at, make } from './dom.js'
import { formatNumber, formatSeconds, nameOf, readClient } from './format.js'
import { ask, Unauthorized } from './gateway.js'

// One client under all rules that count it: `POST /api/clients/inspect`, which counts nothing.

let asked = 0

at('lookup-form').addEventListener('submit', (event) => {
  event.preventDefault()
  void lookUp()
})

// Show the changes that the dialog made.
at('override').addEventListener('close', () => {
  if (at('looked-up').childElementCount > 0) void lookUp()
})

async function lookUp() {
  const number = ++asked
  let shown
  try {
    const reply = await ask('api/clients/inspect', { client: readClient(at('lookup-client').value.trim()) })
    shown = describe((await reply.json()).states)
  } catch (error) {
    if (error instanceof Unauthorized) dispatchEvent(new CustomEvent('unauthorized'))
    shown = [make('p', { class: 'bad' }, error instanceof TypeError ? 'No answer' : error.message)]
  }
  if (number === asked) at('looked-up').replaceChildren(...shown)
}

const NAMES = ['Rule', 'Used', 'Limit', 'Left', 'Resets in', 'State', 'Actions']

function describe(states) {
  if (states.length === 0) return [make('p', {}, 'No rule counts this client.')]
  const head = make('tr', {}, ...NAMES.map((name) => make('th', { scope: 'col' }, name)))
  const table = make('table', {}, make('thead', {}, head), make('tbody', {}, ...states.map(rowOf)))
  const about = { class: 'wide', role: 'group', 'aria-label': 'The client under each rule', tabindex: '0' }
  return [make('div', about, table)]
}

function rowOf(state) {
  const { policy, label, used, limit, remaining, resetSeconds } = state
  const [text, kind] = stateOf(state)
  const texts = [
    numberOf(used),
    numberOf(limit),
    numberOf(remaining),
    typeof resetSeconds === 'number' ? formatSeconds(resetSeconds) : '',
    text,
  ]
  const cells = texts.map((each, index) =>
    make('td', { 'data-name': NAMES[index + 1], ...(index === 4 && { class: kind }) }, each),
  )
  const actions = make('td', {})
  for (const [name, act] of actionsOf(state)) {
    const title = `${name}: ${nameOf(state.client)} under ${policy}, looked up`
    const button = make('button', { type: 'button', 'aria-label': title }, name)
    // The dialog of an override resolves when it is closed.
    button.addEventListener('click', () => void act(state)?.then(lookUp))
    actions.append(button)
  }
  const name = label ? `${policy} (${label})` : policy
  return make('tr', {}, make('th', { scope: 'row' }, name), ...cells, actions)
}

function actionsOf({ client, used, mode, bannedSeconds }) {
  const actions = [['Override', override]]
  if (typeof bannedSeconds === 'number') actions.unshift(['Unban', liftAll])
  else if (client.global !== true) actions.unshift(['Ban for 1 hour', ban])
  if (mode !== 'shadow' && used !== 0) actions.unshift(['Let in', letIn])
  return actions
}

/** Lifts bans by an operator and by a rule, under all rules and under one. */
const liftAll = ({ client }) => unban({ client, policy: null })

function stateOf({ bannedSeconds, overrideSeconds, exceeded, mode, source, onStoreError }) {
  if (typeof bannedSeconds === 'number') return [`banned for ${formatSeconds(bannedSeconds)}`, 'bad']
  if (source === 'none')
    return onStoreError === 'closed'
      ? ['refused: Redis is unavailable', 'bad']
      : ['not counted: Redis is unavailable', 'warn']
  const own = typeof overrideSeconds === 'number' ? `, own limit for ${formatSeconds(overrideSeconds)}` : ''
  if (!exceeded) return [`within${own}`, '']
  return mode === 'shadow' ? [`over limit (shadow)${own}`, 'warn'] : [`over limit${own}`, 'bad']
}

function numberOf(value) {
  return typeof value === 'number' ? formatNumber(value) : 'unknown'
}

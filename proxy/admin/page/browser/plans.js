import { act, tellChanged } from './actions.js'
import { at, make } from './dom.js'
import { nameOf, readClient } from './format.js'
import { ask, Unauthorized } from './gateway.js'

// The plans that are set for clients, under rules with `plan: store`: `POST /api/clients/plan` and `GET /api/plans`.

let asked = 0

/** Sets the names of plans to choose from. Without a rule that reads plans, there is no form. */
export function showPlanNames(limits) {
  const names = new Set(
    limits.filter(({ plan }) => plan === 'store').flatMap(({ plans }) => Object.keys(plans)),
  )
  at('plans-section').hidden = names.size === 0
  const chosen = at('plan-name').value
  at('plan-name').replaceChildren(...[...names].map((name) => make('option', {}, name)))
  if (names.has(chosen)) at('plan-name').value = chosen
}

at('plan-form').addEventListener('submit', (event) => {
  event.preventDefault()
  void showPlan()
})
at('plan-set').addEventListener('click', () => void change(at('plan-name').value))
at('plan-remove').addEventListener('click', () => void change(null))
at('plan-list').addEventListener('click', () => void listPlans())

const typed = () => readClient(at('plan-client').value.trim())

async function readPlan(client) {
  return (await (await ask('api/clients/plan', { client })).json()).clients
}

function showPlan() {
  return show(async () => describe(await readPlan(typed())))
}

function listPlans() {
  return show(async () => {
    const { plans, complete } = await (await ask('api/plans')).json()
    if (plans.length === 0) return [make('p', {}, 'No client with a plan was found.')]
    const shown = describe(plans)
    return complete ? shown : [...shown, make('p', { class: 'quiet' }, `${plans.length} of them.`)]
  })
}

/** @param plan null removes the plan */
async function change(plan) {
  if (!at('plan-form').reportValidity()) return
  const client = typed()
  let before = []
  try {
    before = await readPlan(client)
  } catch {
    // The reply to the change has the reason.
  }
  if (await set({ client, plan }, before)) await showPlan()
}

/** @param before the same clients with their previous plans, in the form of an answer */
function set({ client, policy, plan }, before) {
  const names = [...new Set(before.map((one) => nameOf(one.client)))].join(', ')
  const done = plan === null ? `${names} has no plan any more` : `${names} has the plan ${plan}`
  return act('api/clients/plan', { client, plan, ...(policy && { policy }) }, done, async (reply) => {
    const owner = ({ client: its, keyedBy }) => JSON.stringify([its, keyedBy])
    const read = await readPlan(client).catch(() => [])
    const current = new Map(read.map((one) => [owner(one), one.plan]))
    const isOurs = reply.clients.every((one) => current.get(owner(one)) === one.plan)
    if (!isOurs) tellChanged(client)
    for (const one of isOurs ? before : [])
      await act(
        'api/clients/plan',
        { client: one.client, policy: one.policies[0], plan: one.plan },
        one.plan === null
          ? `${nameOf(one.client)} has no plan again`
          : `${nameOf(one.client)} has the plan ${one.plan} again`,
      )
    await showPlan()
  })
}

/** Shows the answer to the last question. */
async function show(read) {
  const number = ++asked
  let shown
  try {
    shown = await read()
  } catch (error) {
    if (error instanceof Unauthorized) dispatchEvent(new CustomEvent('unauthorized'))
    shown = [make('p', { class: 'bad' }, error instanceof TypeError ? 'No answer' : error.message)]
  }
  if (number === asked) at('planned').replaceChildren(...shown)
}

const NAMES = ['Client', 'Key', 'Plan', 'Rules', 'Key of Redis', 'Actions']

function describe(clients) {
  const head = make('tr', {}, ...NAMES.map((name) => make('th', { scope: 'col' }, name)))
  const table = make('table', {}, make('thead', {}, head), make('tbody', {}, ...clients.map(rowOf)))
  return [
    make('div', { class: 'wide', role: 'group', 'aria-label': 'Plans of clients', tabindex: '0' }, table),
  ]
}

function rowOf(one) {
  const texts = [one.keyedBy, one.plan ?? 'none', one.policies.join(', '), one.key ?? '']
  const cells = texts.map((text, index) => make('td', { 'data-name': NAMES[index + 1] }, text))
  const actions = make('td', {})
  // A plan that no rule reads can only be removed in Redis.
  if (one.plan !== null && one.policies.length > 0) {
    const label = `Remove the plan of ${nameOf(one.client)}`
    const button = make('button', { type: 'button', 'aria-label': label }, 'Remove')
    button.addEventListener('click', () => {
      const named = { client: one.client, policy: one.policies[0], plan: null }
      void set(named, [one]).then((isDone) => isDone && button.closest('tr').remove())
    })
    actions.append(button)
  }
  return make('tr', {}, make('th', { scope: 'row' }, nameOf(one.client)), ...cells, actions)
}

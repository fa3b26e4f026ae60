// The actions of the buttons, and how to undo them.

import { at } from './dom.js'
import { describeLimit, nameOf } from './format.js'
import { ask, Unauthorized } from './gateway.js'
import { limitOf } from './rules.js'

/**
 * @param {string} done message to show afterwards
 * @param {((reply: object) => Promise<unknown>) | undefined} undo gets the reply of the gateway
 * @returns whether the action succeeded
 */
export async function act(path, body, done, undo) {
  let reply
  try {
    reply = await (await ask(path, body)).json()
  } catch (error) {
    if (error instanceof Unauthorized)
      dispatchEvent(new CustomEvent('unauthorized', { detail: error.message }))
    tell(error instanceof TypeError ? 'No answer: nothing may have changed' : error.message, undefined)
    return false
  }
  tell(done, undo && (() => undo(reply)))
  return true
}

let undoLast
function tell(text, undo) {
  at('told').textContent = text
  undoLast = undo
  at('undo').hidden = undo === undefined
}

at('undo').addEventListener('click', () => {
  const undo = undoLast
  at('undo').hidden = true
  at('limited-title').focus({ preventScroll: true })
  void undo?.()
})

/** A reset cannot be undone, because it deletes the counts. */
export function letIn({ policy, client }) {
  return act('api/clients/reset', { policy, client }, `${nameOf(client)} may pass again under ${policy}`)
}

/** Bans a client: an address from everything, a client known by its hash from the rules that count by it. */
export function ban({ client }) {
  const undo = () => unban({ client, policy: null })
  return act('api/clients/ban', { client, for: '1h' }, `${nameOf(client)} is banned for 1 hour`, undo)
}

export function unban({ client, policy, expiresSeconds, reason }) {
  const named = policy === null ? { client } : { client, policy }
  const again = { for: `${Math.max(1, Math.ceil(expiresSeconds ?? 1))}s`, ...(reason && { reason }) }
  // Without a rule, the bans under all rules are lifted. A ban under one rule must not return as a ban from everything.
  const undo =
    expiresSeconds === undefined
      ? undefined
      : async ({ unbanned }) => {
          for (const one of unbanned) await banAgain(one, again)
        }
  return act('api/clients/unban', named, `${nameOf(client)} is not banned any more`, undo)
}

function banAgain({ client, policy }, again) {
  const named = policy === null ? { client } : { client, policy }
  return act('api/clients/ban', { ...named, ...again }, `${nameOf(client)} is banned again`)
}

export function removeOverride({ client, policy, requests, expiresSeconds, label }) {
  const again = {
    policy,
    client,
    requests,
    for: `${Math.ceil(expiresSeconds ?? 1)}s`,
    ...(label && { label }),
  }
  const undo =
    expiresSeconds === undefined
      ? undefined
      : () => act('api/clients/override', again, `${nameOf(client)} has ${requests} requests again`)
  return act(
    'api/clients/override/remove',
    { policy, client },
    `${nameOf(client)} has the limit of ${policy} again`,
    undo,
  )
}

let overridden
export function override(one) {
  overridden = one
  const limit = limitOf(one.policy)
  at('override-about').textContent = `${nameOf(one.client)} under ${one.policy} (${describeLimit(limit)})`
  at('override-requests').value = String((limit?.requests ?? 1) * 2)
  at('override-error').textContent = ''
  at('override').showModal()
}

at('override-cancel').addEventListener('click', () => at('override').close())

at('override-form').addEventListener('submit', (event) => {
  event.preventDefault()
  const { policy, client } = overridden
  const requests = Number(at('override-requests').value)
  const body = { policy, client, requests, for: at('override-for').value }
  const undo = () => removeOverride({ policy, client })
  void act(
    'api/clients/override',
    body,
    `${nameOf(client)} has ${requests} requests under ${policy}`,
    undo,
  ).then((isDone) => {
    if (isDone) at('override').close()
    else at('override-error').textContent = at('told').textContent
  })
})

// One promise for each id, shared by the page and the route that opens it.
const gates = (globalThis.gates ??= new Map())

export function gateOf(id) {
  if (!gates.has(id)) gates.set(id, Promise.withResolvers())
  return gates.get(id)
}

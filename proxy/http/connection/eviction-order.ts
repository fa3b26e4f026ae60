/** A connection that could be closed to make room. */
export type Candidate<Subject> = {
  readonly subject: Subject
  /** The client that the connection counts for; each connection of an unknown client counts as a client of its own. */
  readonly client: string | undefined
  /** When the connection became idle, or was opened. The earliest is closed first. */
  readonly sinceMs: number
}

export type Victim<Subject> = Candidate<Subject> & {
  /** How many candidates its client has when it is chosen, this one included. */
  readonly rank: number
}

/**
 * Chooses the connections to close, in order: each time the longest idle one of the client with the most. Computes the
 * same as choosing one after another, but in one pass with little to sort.
 */
export function chooseVictims<Subject>(
  candidates: readonly Candidate<Subject>[],
  count: number,
): Victim<Subject>[] {
  const groups = groupByClient(candidates)
  const lowest = lowestRank(groups, count)
  const victims: Victim<Subject>[] = []
  for (const group of groups) {
    if (group.length < lowest) continue
    group.sort((a, b) => a.sinceMs - b.sinceMs)
    for (let i = 0; group.length - i >= lowest; i++) {
      const candidate = group[i]
      if (candidate) victims.push({ ...candidate, rank: group.length - i })
    }
  }
  return victims.sort((a, b) => b.rank - a.rank || a.sinceMs - b.sinceMs).slice(0, count)
}

function groupByClient<Subject>(candidates: readonly Candidate<Subject>[]): Candidate<Subject>[][] {
  const groups: Candidate<Subject>[][] = []
  const byClient = new Map<string, Candidate<Subject>[]>()
  for (const candidate of candidates) {
    const { client } = candidate
    const group = client === undefined ? undefined : byClient.get(client)
    if (group) group.push(candidate)
    else {
      const fresh = [candidate]
      groups.push(fresh)
      if (client !== undefined) byClient.set(client, fresh)
    }
  }
  return groups
}

/** The rank down to which victims must be taken to get `count` of them: 1 if there are fewer. */
function lowestRank(groups: readonly (readonly unknown[])[], count: number): number {
  const groupsOfSize: number[] = []
  for (const { length } of groups) groupsOfSize[length] = (groupsOfSize[length] ?? 0) + 1
  let groupsWithRank = 0
  let victims = 0
  for (let rank = groupsOfSize.length - 1; rank > 1; rank--) {
    groupsWithRank += groupsOfSize[rank] ?? 0
    victims += groupsWithRank
    if (victims >= count) return rank
  }
  return 1
}

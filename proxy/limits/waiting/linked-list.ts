/** An item of a list. */
export type Linked<Item> = {
  readonly item: Item
  previous: Linked<Item> | undefined
  next: Linked<Item> | undefined
}

/** A list that removes any of its items in constant time. */
export class LinkedList<Item> {
  first: Linked<Item> | undefined
  last: Linked<Item> | undefined

  add(item: Item): Linked<Item> {
    const added: Linked<Item> = { item, previous: this.last, next: undefined }
    if (this.last) this.last.next = added
    else this.first = added
    this.last = added
    return added
  }

  /** Removes an item, which must be in this list. */
  remove({ previous, next }: Linked<Item>): void {
    if (previous) previous.next = next
    else this.first = next
    if (next) next.previous = previous
    else this.last = previous
  }
}

import { columnsOf, dataOfColumns } from '../../request/addresses/lists/range-columns.ts'
import type { KeptList } from '../addresses/live-lists.ts'
import type { KeptFile } from './kept-files.ts'

/** Copies the list, because its memory may be released while the copy is sent, if the list is read again. */
export function fileOfList({ data, entries, readAtMs }: KeptList): KeptFile {
  return { columns: columnsOf(data).map((column) => Buffer.from(column)), about: { entries, readAtMs } }
}

/** Restores a list of addresses that the primary process has sent: the reverse of `fileOfList`. */
export function listOfFile({ columns, about }: KeptFile): KeptList {
  const data = dataOfColumns(columns.map((column) => [column]))
  return { data, entries: about?.['entries'] ?? 0, readAtMs: about?.['readAtMs'] ?? 0 }
}

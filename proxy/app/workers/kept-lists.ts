import { columnsOf, dataOfColumns } from '../../request/addresses/lists/range-columns.ts'
import type { KeptList } from '../addresses/live-lists.ts'
import type { KeptFile } from './kept-files.ts'

/** A copy, as a list that is read again gives its memory back while it is sent. */
export function fileOfList({ data, entries, readAtMs }: KeptList): KeptFile {
  return { columns: columnsOf(data).map((column) => Buffer.from(column)), about: { entries, readAtMs } }
}

/** A list of addresses as the primary process has sent it: `fileOfList` in reverse. */
export function listOfFile({ columns, about }: KeptFile): KeptList {
  const data = dataOfColumns(columns.map((column) => [column]))
  return { data, entries: about?.['entries'] ?? 0, readAtMs: about?.['readAtMs'] ?? 0 }
}

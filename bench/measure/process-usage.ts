import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/** CPU time in microseconds that the operating system has charged to some processes since they started. */
export type CpuTime = { readonly userUs: number; readonly systemUs: number }

const tickUs = 1_000_000 / Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))

/** The process and all its descendants, such as workers of nginx or of the gateway. */
export function familyOf(pid: number): number[] {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
  )
  return [pid, ...children.flatMap(familyOf)]
}

/** CPU time of all threads of the processes: `utime` and `stime` of proc_pid_stat(5), in clock ticks. */
export function readCpuTime(pids: readonly number[]): CpuTime {
  let userUs = 0
  let systemUs = 0
  for (const pid of pids) {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The second field is the program's name in parentheses, which may contain spaces.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    userUs += Number(fields[11]) * tickUs
    systemUs += Number(fields[12]) * tickUs
  }
  return { userUs, systemUs }
}

/** Resident memory of each process in bytes: `VmRSS` of proc_pid_status(5). */
export function readResidentBytes(pids: readonly number[]): number[] {
  return pids.map((pid) => {
    const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]
    return Number(kib ?? 0) * 1024
  })
}

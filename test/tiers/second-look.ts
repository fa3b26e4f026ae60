import { importsOf } from './imports.ts'
import type { Failure } from './failure.ts'
import { runStep, type Outcome, type Step } from './step.ts'

/** A failed file that passed when it was run again, alone. */
export type Flaky = {
  readonly failures: readonly Failure[]
  /** The reason why the run fails nevertheless. */
  readonly objection: string | undefined
  /** The output of both runs. */
  readonly logs: readonly [string, string]
}

/** The results of the second look after a failed vitest step. */
export type SecondLook = { readonly failed: readonly Failure[]; readonly flaky: readonly Flaky[] }

/** If a run has more flaky files than this, none is excused. */
export const MAX_FLAKY_FILES = 2

/**
 * Runs each failed file once more, alone in a fresh process.
 *
 * @param changed paths that the change touches; undefined if unknown, in which case any file may be changed
 */
export async function lookAgain(
  first: Outcome,
  changed: ReadonlySet<string> | undefined,
  results: string,
): Promise<SecondLook> {
  const failures = first.tests?.failures ?? []
  const failed: Failure[] = []
  const flaky: Flaky[] = []
  const byFile = Map.groupBy(failures, ({ file }) => file)
  for (const [file, ofFile] of byFile) {
    // Too many failures to be chance, or failures outside any file.
    if (file === '' || byFile.size > 2 * MAX_FLAKY_FILES) failed.push(...ofFile)
    else {
      const again = await runStep(aloneIn(first.step, ofFile), results)
      if (!again.ok) failed.push(...ofFile)
      else
        flaky.push({
          failures: ofFile,
          objection: objectionTo(ofFile, changed),
          logs: [first.log, again.log],
        })
    }
  }
  return { failed, flaky }
}

function aloneIn(step: Step, failures: readonly Failure[]): Step {
  const { file = '' } = failures[0] ?? {}
  const project = failures.find((failure) => failure.project !== '')?.project
  const tests = project === undefined ? file : `--project ${project} ${file}`
  return { ...step, name: `${step.name} again ${file}`, tests }
}

/** The reason why a failure counts although it did not recur. */
export function objectionTo(
  failures: readonly Failure[],
  changed: ReadonlySet<string> | undefined,
): string | undefined {
  const grave = failures.find(({ kind }) => kind !== 'other')
  if (grave) return `a failure of this kind is never excused: ${grave.kind}`
  const { file = '' } = failures[0] ?? {}
  if (!changed) return 'what the change touches is not known'
  const touched = [...importsOf(file)].find((path) => changed.has(path))
  return touched === undefined ? undefined : `the change touches ${touched}`
}

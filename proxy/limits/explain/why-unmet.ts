import { conditionText } from '../conditions/written-conditions.ts'
import type { UnmetCondition } from '../conditions/conditions.ts'

/** Explains which condition keeps a rule from applying, with the condition as written in the table. */
export function whyUnmet({ field, condition }: UnmetCondition): string {
  return field === 'when'
    ? `when is not met: ${conditionText(condition)}`
    : `unless is met: ${conditionText(condition)}`
}

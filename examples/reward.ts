/** A reward that runs in containers: `functions.ts` calls it. */
export function score({ answer, wanted }: { answer: string; wanted: string }): number {
  console.log(`compares ${answer} with ${wanted}`)
  return answer.trim() === wanted ? 1 : 0
}
